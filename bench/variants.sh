#!/usr/bin/env bash
# Eight megabytes from one subgraph (bench/graphs/big-response), written compactly, pretty-printed, with members in reverse
# order and with escapes in strings: what they cost Ogive and Hive Router. Both gateways are on core 0 and take turns; client
# (curl) and subgraph (nginx, which sends files) are on core 1. Answers are compared first. Prints a Markdown table;
# MARKDOWN=FILE also writes it between the markers of that file.
# Usage: bash bench/variants.sh [ROUNDS [REQUESTS]]; 6 rounds of 10 requests by default, which takes less than a minute.
# OGIVE=PATH measures another binary; HIVE_ROUTER=PATH is the other gateway, by default the one that
# `ogive bench install hive-router` has put into its cache (CACHE=FOLDER if that is not the default).
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

rounds="${1:-6}" requests="${2:-10}"
needs curl jq nginx node taskset
binary
hive="${HIVE_ROUTER:-${CACHE:-target/bench}/installed/hive-router/bin/hive_router}"
if [ ! -x "$hive" ]; then
  echo "error: no Hive Router at $hive: run \`ogive bench install hive-router\`, or say where with HIVE_ROUTER=PATH" >&2
  exit 1
fi

scratch
chmod 755 "$work"
graph=bench/graphs/big-response
forms=(compact pretty-printed reordered escaped)
gateways=(ogive hive)

# What the subgraph answers: the operation concerns nothing else, so it is what the client asks.
serve_subgraphs "$graph"
jq -Rs '{ query: . }' "$graph/operations/all.graphql" >"$work/request"
ask() { curl --silent --show-error --fail -H 'content-type: application/json' --data-binary "@$work/request" "$@"; }
mkdir "$work/forms"
ask -o "$work/answer" "$url/graphql/content"
end "$pid"
node bench/variants.mjs write "$work/answer" "$work/forms"

# A port that is free now.
port() { node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'; }

# The subgraph sends the form that the authorization names.
subgraph="$(port)"
cat >"$work/nginx.conf" <<END
daemon off;
worker_processes 1;
pid $work/nginx.pid;
error_log stderr crit;
$([ "$(id -u)" = 0 ] && echo 'user root;')
events {}
http {
  access_log off;
  sendfile on;
  keepalive_requests 1000000;
  client_body_temp_path $work/body;
  proxy_temp_path $work/proxy;
  fastcgi_temp_path $work/fastcgi;
  uwsgi_temp_path $work/uwsgi;
  scgi_temp_path $work/scgi;
  default_type application/json;
  server {
    listen 127.0.0.1:$subgraph;
    root $work/forms;
    location = /graphql { rewrite ^ /\$http_authorization last; }
    # Files are not for POST, says nginx; here they are.
    error_page 405 =200 /\$http_authorization;
  }
}
END
taskset -c 1 nginx -c "$work/nginx.conf" 2>"$work/nginx.log" &
started+=($!)
sed "s|url: \"[^\"]*\"|url: \"http://127.0.0.1:$subgraph/graphql\"|" "$graph/supergraph.graphql" >"$work/supergraph.graphql"

cat >"$work/ogive.yaml" <<END
listen: 127.0.0.1:0
http: { workers: 1 }
headers: { all: { request: [{ propagate: { named: authorization } }] } }
log: { filter: info }
END
taskset -c 0 "$OGIVE" serve -c "$work/ogive.yaml" -s "$work/supergraph.graphql" >/dev/null 2>"$work/ogive.log" &
process_ogive=$!
started+=("$process_ogive")
url_ogive="$(address "$work/ogive.log" serving)/graphql"

listen="$(port)"
cat >"$work/router.config.yaml" <<END
supergraph: { source: file, path: $work/supergraph.graphql }
headers: { all: { request: [{ propagate: { named: authorization } }] } }
END
(
  cd "$work"
  PORT="$listen" HOST=127.0.0.1 LOG_LEVEL=warn ROUTER_HTTP_WORKERS=1 exec taskset -c 0 "$hive" >"$work/hive.log" 2>&1
) &
process_hive=$!
started+=("$process_hive")
url_hive="http://127.0.0.1:$listen/graphql"
for _ in $(seq 200); do
  if curl --silent --fail -o /dev/null "http://127.0.0.1:$listen/health"; then break; fi
  sleep 0.05
done

# What belongs to a gateway.
of() { local name="$1_$2"; echo "${!name}"; }
for form in "${forms[@]}"; do
  for gateway in "${gateways[@]}"; do
    if ! ask -H "authorization: $form" -o "$work/$gateway-$form" "$(of url "$gateway")"; then
      cat "$work/$gateway.log" >&2
      exit 1
    fi
  done
  node bench/variants.mjs compare "$work/forms" "$form" "$work/ogive-$form" "$work/hive-$form"
done

# CPU time of a process so far, in nanoseconds.
cpu() { awk '{ sum += $1 } END { printf "%.0f", sum }' /proc/"$1"/task/*/schedstat; }
# Asks one gateway for one form, one request after another.
load() {
  local gateway="$1" form="$2" before after process good
  process="$(of process "$gateway")"
  before="$(cpu "$process")"
  ask -H "authorization: $form" -o /dev/null -w '%{http_code} %{time_total}\n' \
    "$(of url "$gateway")?n=[1-$requests]" >"$work/times" 2>/dev/null
  after="$(cpu "$process")"
  good="$(grep -c '^200 ' "$work/times" || true)"
  if [ "$good" != "$requests" ]; then
    echo "error: $gateway answered $good of $requests requests for $form" >&2
    return 1
  fi
  # The first round is for warming up.
  if [ "$3" -gt 0 ]; then
    awk '{ print $2 * 1000 }' "$work/times" >>"$work/wall-$gateway-$form"
    echo $(((after - before) / requests)) | awk '{ print $1 / 1e6 }' >>"$work/cpu-$gateway-$form"
  fi
}
for ((round = 0; round <= rounds; round++)); do
  for form in "${forms[@]}"; do
    for gateway in "${gateways[@]}"; do load "$gateway" "$form" "$round"; done
  done
done

median_of() { median <"$work/$1-$2-$3"; }
{
  printf '`bash bench/variants.sh`: %s, %s rounds of %s requests; p50 as the client sees it, medians of CPU time.\n\n' \
    "Hive Router $(sed -n 's/^version = "\(.*\)"/\1/p' bench/gateways/hive-router/gateway.toml)" "$rounds" "$requests"
  printf '| the answer | MB | p50, ms: Ogive | Hive Router | ratio | CPU, ms: Ogive | Hive Router | ratio | CPU against compact: Ogive | Hive Router |\n'
  printf '|---|---|---|---|---|---|---|---|---|---|\n'
  for form in "${forms[@]}"; do
    echo "$form $(stat -c %s "$work/forms/$form")" \
      "$(median_of wall ogive "$form") $(median_of wall hive "$form")" \
      "$(median_of cpu ogive "$form") $(median_of cpu hive "$form")" \
      "$(median_of cpu ogive compact) $(median_of cpu hive compact)"
  done | awk '{ printf "| %s | %.1f | %.1f | %.1f | %.2f | %.1f | %.1f | %.2f | %.2f | %.2f |\n",
    $1, $2 / 1e6, $3, $4, $3 / $4, $5, $6, $5 / $6, $5 / $7, $6 / $8 }'
} >"$work/table"
cat "$work/table"
if [ -n "${MARKDOWN:-}" ]; then
  write_between variants "$MARKDOWN" "$work/table"
fi
