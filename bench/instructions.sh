#!/usr/bin/env bash
# What a whole request costs in instructions, HTTP on both sides included: the gateway alone runs under callgrind, and the
# difference between two numbers of requests is what a request costs. Every request brings a token of its own, which is
# forwarded; subgraphs and client (curl) are outside. Prints a Markdown table; figures of two runs differ by about 1 %.
# Usage: bash bench/instructions.sh [--requests N] [--profile DIRECTORY] [--hive PATH]
# With --profile, callgrind's files are kept there. OGIVE=PATH measures another binary; a profile names functions only
# if it has its symbols (`--profile release` has). --hive measures a Hive Router in the same way and prints the ratio.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

requests=200 profile='' hive=''
while [ $# -gt 0 ]; do
  case "$1" in
    --requests) requests="$2" ;;
    --profile) profile="$2" ;;
    --hive) hive="$2" ;;
    *) sed -n 5,7p "$0" >&2; exit 2 ;;
  esac
  shift 2
done
needs curl valgrind
binary

scratch
if [ -n "$profile" ]; then mkdir -p "$profile"; fi

# The body of a request for an operation of a graph.
body() {
  printf '{"query":"%s"}' "$(grep -v '^ *#' "bench/graphs/$1/operations/$2.graphql" | tr '\n' ' ' | sed 's/"/\\"/g')"
}

# Starts the subgraphs of a graph; sets `mock`.
subgraphs() {
  serve "mock.$1" "$OGIVE" mock --supergraph "bench/graphs/$1/supergraph.graphql" --data "bench/graphs/$1/data.json" \
    --listen 127.0.0.1:0
  mock="$url"
}

# Runs a command under callgrind; sets `process`.
under_callgrind() {
  valgrind --tool=callgrind --callgrind-out-file="$out" "$@" >/dev/null 2>"$work/log" &
  process=$!
  started+=("$process")
}

# Starts Ogive for a graph with a piece of configuration; sets `url`.
start_ogive() {
  local graph="$1" more="$2"
  {
    printf 'listen: 127.0.0.1:0\nhttp: { workers: 1 }\n%s\n' "$more"
    echo 'headers: { all: { request: [{ propagate: { named: authorization } }] } }'
    subgraph_urls "bench/graphs/$graph" "$mock"
  } >"$work/ogive.yaml"
  under_callgrind "$OGIVE" serve -c "$work/ogive.yaml" -s "bench/graphs/$graph/supergraph.graphql"
  url="$(address "$work/log" serving)/graphql"
}

# Starts Hive Router for a graph, as shipped but for one worker and the forwarded header; sets `url`.
start_hive() {
  local port=$((20000 + RANDOM % 10000))
  sed "s|http://127.0.0.1:4200/|$mock/|" "bench/graphs/$1/supergraph.graphql" >"$work/supergraph.graphql"
  {
    printf 'supergraph: { source: file, path: %s }\n' "$work/supergraph.graphql"
    printf 'headers: { all: { request: [{ propagate: { named: authorization } }] } }\n'
  } >"$work/hive.yaml"
  PORT="$port" HOST=127.0.0.1 LOG_LEVEL=warn ROUTER_HTTP_WORKERS=1 ROUTER_CONFIG_FILE_PATH="$work/hive.yaml" \
    under_callgrind "$hive"
  url="http://127.0.0.1:$port/graphql"
  for _ in $(seq 120); do
    if curl --silent --fail --output /dev/null "http://127.0.0.1:$port/readiness"; then return; fi
    sleep 0.5
  done
  cat "$work/log" >&2
  return 1
}

# Instructions of a gateway's whole life with a number of requests; the rest of the arguments starts it.
count() {
  local name="$1" requests="$2" out process url good i
  shift 2
  out="${profile:-$work}/callgrind.$name.$requests"
  "$@"
  for ((i = 0; i < requests; i++)); do
    printf 'url = "%s"\nheader = "authorization: Bearer %08d"\nheader = "content-type: application/json"\n' "$url" "$i"
    printf 'data-binary = "@%s"\noutput = /dev/null\nwrite-out = "%%{http_code} %%{size_download}\\n"\nnext\n' "$work/body"
  done | sed '$d' >"$work/requests"
  good="$(curl --silent --no-progress-meter -K "$work/requests" | sort | uniq -c)"
  if [ "$(wc -l <<<"$good")" != 1 ] || ! grep -q "^ *$requests 200 " <<<"$good"; then
    echo "error: not all requests were answered alike: $good" >&2
    return 1
  fi
  kill -TERM "$process"
  wait "$process" || true
  size="$(awk '{ print $3 }' <<<"$good")"
  instructions="$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$work/log")"
}

# Sets `each` to the instructions of one request.
count_each() {
  local name="$1" few
  shift
  count "$name" "$((requests / 2))" "$@"
  few="$instructions"
  count "$name" "$((requests + requests / 2))" "$@"
  each=$(((instructions - few) / requests))
}

# Name, graph, operation, and as many more pieces of configuration as rows.
rows() {
  local name="$1" graph="$2" operation="$3" theirs='' n=0 each more
  shift 3
  body "$graph" "$operation" >"$work/body"
  subgraphs "$graph"
  if [ -n "$hive" ]; then
    count_each "$name-hive" start_hive "$graph"
    theirs="$each"
    row "$name, Hive Router"
  fi
  for more in "$@"; do
    count_each "$name$((++n))" start_ogive "$graph" "$more"
    row "$name${more:+, $more}"
  done
}
row() {
  awk -v name="$1" -v size="$size" -v each="$each" -v theirs="${theirs:-0}" \
    'BEGIN { printf "| %s | %s | %d | %s |\n", name, size, each, theirs ? sprintf("%.3f", each / theirs) : "" }'
}

printf '| request | bytes answered | instructions | of Hive Router |\n|---|---|---|---|\n'
rows query shop test-query '' 'execution: { reuse: entities }'
rows trivial single user ''
