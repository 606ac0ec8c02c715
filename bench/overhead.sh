#!/usr/bin/env bash
# What telemetry, TLS, HTTP/2 and compression cost: requests per second of CPU time of the gateway, which is pinned to one
# core; client (curl) and subgraphs are on the other. Prints a Markdown table of medians over interleaved rounds.
# Usage: bash bench/overhead.sh [--markdown FILE] [--rounds N] [--requests N]; the defaults take two to three minutes.
# With --markdown the table goes between the markers of FILE. OGIVE=PATH measures another binary.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

page='' rounds=9 requests=4000
while [ $# -gt 0 ]; do
  case "$1" in
    --markdown) page="$2" ;;
    --rounds) rounds="$2" ;;
    --requests) requests="$2" ;;
    *) sed -n 4,5p "$0" >&2; exit 2 ;;
  esac
  shift 2
done
needs curl openssl python3 ss taskset
binary

scratch

# An authority, a certificate for the gateway and one for the client.
openssl ecparam -name prime256v1 -genkey -noout -out "$work/ca.key"
openssl req -x509 -new -key "$work/ca.key" -subj /CN=ca -days 2 -out "$work/ca.pem"
for name in server client; do
  openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$work/$name.key"
  openssl req -new -key "$work/$name.key" -subj "/CN=$name" |
    openssl x509 -req -CA "$work/ca.pem" -CAkey "$work/ca.key" -days 2 -out "$work/$name.pem" \
      -extfile <(printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n') 2>/dev/null
done

serve mock taskset -c 1 "$OGIVE" mock --config examples/demo/mock.yaml --listen 127.0.0.1:0
mock="$url"

# A gateway with more configuration; sets `process` and `url`.
gateway() {
  local name="$1" level="$2" more="$3"
  {
    printf 'listen: 127.0.0.1:0\nhttp: { workers: 1 }\noverride_subgraph_url:\n'
    for subgraph in accounts inventory products reviews; do
      printf '  %s: %s/graphql/%s\n' "$subgraph" "$mock" "$subgraph"
    done
    printf '%b\n' "$more"
  } >"$work/$name.yaml"
  taskset -c 0 "$OGIVE" serve -c "$work/$name.yaml" -s examples/demo/supergraph.graphql --log "$level" \
    >/dev/null 2>"$work/$name.log" &
  process=$!
  started+=("$process")
  if [ "$level" != off ]; then
    url="$(address "$work/$name.log" serving)/graphql"
    return
  fi
  # It says nothing, and listens on one port only.
  local scheme=http port _
  if grep -q '^tls:' "$work/$name.yaml"; then scheme=https; fi
  for _ in $(seq 200); do
    port="$(ss -ltnpH | sed -n "s/.* 127.0.0.1:\([0-9]*\) .*pid=$process,.*/\1/p")"
    if [ -n "$port" ]; then
      url="$scheme://127.0.0.1:$port/graphql"
      return
    fi
    sleep 0.05
  done
  echo "error: the gateway does not listen" >&2
  return 1
}
# CPU time of a process so far, in nanoseconds, threads that have ended included: the process' CPU clock (man 3
# clock_getcpuclockid). utime and stime of /proc/PID/stat say the same in steps of 10 ms, some percent of a load.
cpu() { python3 -c 'import sys, time; print(time.clock_gettime_ns(~int(sys.argv[1]) << 3 | 2))' "$1"; }

printf '{"query":"{ me { name } }"}' >"$work/small"
fields='name inStock reviews { stars author { username name } }'
aliases="$(for i in $(seq 40); do printf 'a%s: topProducts { %s } ' "$i" "$fields"; done)"
printf '{"query":"{ %s }"}' "$aliases" >"$work/large"

# One load; prints requests per CPU second.
load() {
  local process="$1" url="$2" body="$3" count="$4" before after good
  shift 4
  before="$(cpu "$process")"
  good="$(taskset -c 1 curl --silent --no-progress-meter --parallel --parallel-max 8 --cacert "$work/ca.pem" \
    -H 'content-type: application/json' --data-binary "@$work/$body" "$@" \
    -o /dev/null -w '%{http_code}\n' "$url?n=[1-$count]" 2>/dev/null | grep -c '^200$' || true)"
  after="$(cpu "$process")"
  if [ "$good" != "$count" ]; then
    echo "error: $good of $count requests to $url were answered well" >&2
    return 1
  fi
  awk -v n="$count" -v t="$((after - before))" 'BEGIN { printf "%.0f\n", n / t * 1e9 }'
}

otlp="otlp: { enabled: true, endpoint: '$mock' }"
scrape="prometheus: { enabled: true, listen: 127.0.0.1:0 }"
tls="certificate_chain: $work/server.pem, key: $work/server.key"
names=() processes=() urls=() bodies=() counts=() groups=() arguments=()
# Group, name, body, requests, arguments of curl; measures the last gateway that was started.
row() {
  groups+=("$1") names+=("$2") bodies+=("$3") counts+=("$4") arguments+=("$5")
  processes+=("$process") urls+=("$url")
}

gateway off off ''
row telemetry 'nothing, not even a log' small "$requests" ''
off="$process" off_url="$url"
gateway default info ''
row telemetry 'default: log of level `info`' small "$requests" ''
gateway metrics info "telemetry: { exporters: { metrics: { $scrape } } }"
row telemetry 'metrics for Prometheus' small "$requests" ''
gateway sampled info "telemetry: { exporters: { metrics: { $scrape }, tracing: { common: { sampler: 0.05 }, $otlp } } }"
row telemetry 'metrics, one request in 20 traced' small "$requests" ''
gateway full info "telemetry: { exporters: { metrics: { $scrape }, tracing: { $otlp } }, access_log: { enabled: true } }"
row telemetry 'metrics, every request traced, access log' small "$requests" ''
process="$off" url="$off_url"
row connection 'HTTP/1.1, plain' small "$requests" '--http1.1'
gateway tls off "tls: { supergraph: { $tls } }"
row connection 'HTTP/1.1, TLS 1.3' small "$requests" '--http1.1 --tlsv1.3'
row connection 'HTTP/2, TLS 1.3' small "$requests" '--http2 --tlsv1.3'
gateway mtls off "tls: { supergraph: { $tls, client_authentication: { certificate_authorities: $work/ca.pem } } }"
row connection 'HTTP/1.1, TLS 1.3, client certificates' small "$requests" "--http1.1 --tlsv1.3 --cert $work/client.pem --key $work/client.key"
process="$off" url="$off_url"
few=$((requests / 10))
size="$(curl --silent -H 'content-type: application/json' --data-binary "@$work/large" "$url" | wc -c)"
for encoding in identity gzip br zstd; do
  row "answers of $((size / 1024)) KiB" "$encoding" large "$few" "-H accept-encoding:$encoding"
done

for ((round = 0; round <= rounds; round++)); do
  for ((i = 0; i < ${#names[@]}; i++)); do
    # shellcheck disable=SC2086 # several words
    rate="$(load "${processes[i]}" "${urls[i]}" "${bodies[i]}" "${counts[i]}" ${arguments[i]})"
    # The first round is for warming up.
    [ "$round" = 0 ] || echo "$rate" >>"$work/rates.$i"
  done
done

{
  printf '`bash bench/overhead.sh`: %s requests per row and round, medians of %s rounds.\n\n' "$requests" "$rounds"
  printf '| | | requests per core-second | µs of CPU per request | against the first of its kind |\n|---|---|---|---|---|\n'
  first='' group=''
  for ((i = 0; i < ${#names[@]}; i++)); do
    if [ "${groups[i]}" != "$group" ]; then group="${groups[i]}" first="$work/rates.$i"; fi
    rate="$(median <"$work/rates.$i")"
    # Of each round by itself, since what else the machine does changes from round to round.
    more="$(paste "$first" "$work/rates.$i" | awk '{ printf "%.4f\n", ($1 / $2 - 1) * 100 }' | median)"
    awk -v g="$group" -v n="${names[i]}" -v r="$rate" -v m="$more" \
      'BEGIN { printf "| %s | %s | %d | %.1f | %+.1f %% |\n", g, n, r, 1e6 / r, m }'
  done
} >"$work/table"
cat "$work/table"
if [ -n "$page" ]; then
  write_between overhead "$page" "$work/table"
fi
