{{- define "ogive.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "ogive.labels" -}}
{{ include "ogive.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "ogive.selector" -}}
app.kubernetes.io/name: ogive
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ogive.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{ .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create -}}
{{ include "ogive.name" . }}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "ogive.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* The port of an address such as 0.0.0.0:4000. */}}
{{- define "ogive.port" -}}
{{- $port := . | toString | splitList ":" | last -}}
{{- if not (regexMatch "^[0-9]+$" $port) -}}
{{- fail (printf "`%s` has no port: write HOST:PORT" (toString .)) -}}
{{- end -}}
{{ $port }}
{{- end -}}

{{/* Where GraphQL, probes and metrics are: a YAML object with listen, health, healthPath, readinessPath, metrics. */}}
{{- define "ogive.ports" -}}
{{- $listen := dig "listen" "127.0.0.1:4000" .Values.config -}}
{{- if hasPrefix "127.0.0.1:" $listen -}}
{{- fail "config.listen is an address that only the pod itself can reach: write 0.0.0.0:PORT" -}}
{{- end -}}
{{- $health := dig "health_check" "listen" nil .Values.config -}}
listen: {{ include "ogive.port" $listen }}
health: {{ include "ogive.port" ($health | default $listen) }}
healthOwn: {{ ne (toString ($health | default $listen)) (toString $listen) }}
healthPath: {{ dig "health_check" "path" "/health" .Values.config | quote }}
readinessPath: {{ dig "health_check" "readiness_path" "/readiness" .Values.config | quote }}
metrics: {{ if dig "telemetry" "exporters" "metrics" "prometheus" "enabled" false .Values.config -}}
  {{ include "ogive.port" (dig "telemetry" "exporters" "metrics" "prometheus" "listen" "127.0.0.1:9090" .Values.config) }}
{{- else }} 0 {{- end }}
metricsPath: {{ dig "telemetry" "exporters" "metrics" "prometheus" "path" "/metrics" .Values.config | quote }}
{{- end -}}
