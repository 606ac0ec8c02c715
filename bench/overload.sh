#!/usr/bin/env bash
# Three classes of requests when five times as many come as the subgraph can answer: Ogive with and without
# `traffic_shaping.router.overload`, and gateways and proxies beside it, in turns; prints a Markdown table.
# Usage: bash bench/overload.sh [--cache DIR] [--seconds N] [--rounds N] [--markdown FILE]
# DIR is where `ogive bench install hive-router` has put it (target/bench). OGIVE=PATH measures another binary than the one
# it would build. Needs nginx and taskset, and an otherwise idle machine: gateways have core 0, all others core 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

cache=target/bench seconds=10 rounds=3 markdown=''
while [ $# -gt 0 ]; do
  case "$1" in
    --cache) cache="$2" ;;
    --seconds) seconds="$2" ;;
    --rounds) rounds="$2" ;;
    --markdown) markdown="$2" ;;
    *) sed -n 4,6p "$0" >&2; exit 2 ;;
  esac
  shift 2
done
needs nginx taskset
binary
scratch
cargo build --quiet --release --package ogive-bench --example overload
client="${CARGO_TARGET_DIR:-target}/release/examples/overload"
hive="$(find -L "$cache" -name hive_router -type f -perm -u+x | head -1)"
graph=bench/graphs/single/supergraph.graphql
export OVERLOAD_SUBGRAPH=127.0.0.1:4290

# TITLE ADDRESS COMMAND..: starts a gateway, measures it, ends it.
row() {
  local title="$1" address="$2"
  shift 2
  taskset -c 0 "$@" >"$work/log" 2>&1 &
  started+=("$!")
  local pid=$!
  taskset -c 1 "$client" "$title" "$address" "$seconds"
  end "$pid"
}

ogive() { row "$1" 127.0.0.1:4291 "$OGIVE" serve -c "$work/$2.yaml" -s "$graph" --listen 127.0.0.1:4291; }
common="override_subgraph_url: { users: 'http://$OVERLOAD_SUBGRAPH' }"
echo "$common" >"$work/plain.yaml"
cat >"$work/classes.yaml" <<YAML
$common
traffic_shaping:
  router:
    overload:
      enabled: true
      classes:
        - { name: high, when: { eq: [{ request_header: x-class }, high] } }
        - { name: middle, when: { eq: [{ request_header: x-class }, middle] } }
YAML
sed "s#http://127.0.0.1:4200/graphql/users#http://$OVERLOAD_SUBGRAPH/graphql#" "$graph" >"$work/supergraph.graphql"
cat >"$work/router.config.yaml" <<YAML
supergraph: { source: file, path: $work/supergraph.graphql }
YAML
# TITLE LIMIT: nginx, with so many connections at a time if there is a limit.
proxy() {
  local limit=''
  if [ -n "$2" ]; then limit="limit_conn all $2;"; fi
  mkdir -p "$work/nginx"
  cat >"$work/nginx.conf" <<CONF
daemon off;
worker_processes 1;
pid $work/nginx.pid;
error_log stderr crit;
events { worker_connections 20000; }
http {
  access_log off;
  client_body_temp_path $work/nginx/a; proxy_temp_path $work/nginx/b;
  fastcgi_temp_path $work/nginx/c; uwsgi_temp_path $work/nginx/d; scgi_temp_path $work/nginx/e;
  keepalive_requests 1000000;
  limit_conn_zone \$server_name zone=all:1m;
  upstream subgraph { server $OVERLOAD_SUBGRAPH; keepalive 2000; }
  server {
    listen 127.0.0.1:4293;
    server_name all;
    location /graphql {
      $limit
      proxy_pass http://subgraph;
      proxy_http_version 1.1;
      proxy_set_header connection "";
    }
  }
}
CONF
  row "$1" 127.0.0.1:4293 nginx -p "$work" -c "$work/nginx.conf"
}

for round in $(seq "$rounds"); do
  ogive 'Ogive, `overload`' classes
  ogive 'Ogive, off' plain
  if [ -n "$hive" ]; then
    row 'Hive Router' 127.0.0.1:4292 env -C "$work" PORT=4292 HOST=127.0.0.1 LOG_LEVEL=error ROUTER_HTTP_WORKERS=1 "$(realpath "$hive")"
  fi
  proxy 'nginx' ''
  proxy 'nginx, `limit_conn 24`' 24
done >"$work/rows"

{
  echo "| | goodput, of capacity | high: p99 idle, ms | p99, ms | answered | refused | middle: p99 idle, ms | p99, ms | answered | refused | low: p99 idle, ms | p99, ms | answered | refused |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
  sort -s -t '|' -k 2,2 "$work/rows"
} >"$work/table"
cat "$work/table"
if [ -n "$markdown" ]; then write_between overload "$markdown" "$work/table"; fi
