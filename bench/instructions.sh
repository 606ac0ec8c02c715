#!/usr/bin/env bash
# What a whole request costs in instructions, HTTP on both sides included: the gateway alone runs under callgrind, and the
# difference between two numbers of requests is what a request costs. Every request brings a token of its own, which is
# forwarded; subgraphs and client (curl) are outside. Prints a Markdown table; figures of two runs differ by about 1 %.
# Usage: bash bench/instructions.sh [--requests N] [--profile DIRECTORY]
# With --profile, callgrind's files are kept there. OGIVE=PATH measures another binary; a profile names functions only
# if it has its symbols (`--profile release` has).
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

requests=200 profile=''
while [ $# -gt 0 ]; do
  case "$1" in
    --requests) requests="$2" ;;
    --profile) profile="$2" ;;
    *) sed -n 5,7p "$0" >&2; exit 2 ;;
  esac
  shift 2
done
needs curl valgrind
binary

work="$(mktemp -d)"
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
if [ -n "$profile" ]; then mkdir -p "$profile"; fi

# The body of a request for an operation of a graph.
body() {
  printf '{"query":"%s"}' "$(grep -v '^ *#' "bench/graphs/$1/operations/$2.graphql" | tr '\n' ' ' | sed 's/"/\\"/g')"
}

# Starts the subgraphs of a graph; sets `mock`.
subgraphs() {
  "$OGIVE" mock --supergraph "bench/graphs/$1/supergraph.graphql" --data "bench/graphs/$1/data.json" \
    --listen 127.0.0.1:0 >"$work/mock.$1" 2>&1 &
  started+=($!)
  mock="$(address "$work/mock.$1")"
}

# Instructions of the gateway's whole life with a number of requests.
count() {
  local name="$1" graph="$2" more="$3" requests="$4" process url subgraph good i
  {
    printf 'listen: 127.0.0.1:0\nhttp: { workers: 1 }\n%s\n' "$more"
    printf 'headers: { all: { request: [{ propagate: { named: authorization } }] } }\noverride_subgraph_url:\n'
    for subgraph in "bench/graphs/$graph/subgraphs"/*.graphql; do
      subgraph="$(basename "$subgraph" .graphql)"
      printf '  %s: %s/graphql/%s\n' "$subgraph" "$mock" "$subgraph"
    done
  } >"$work/ogive.yaml"
  valgrind --tool=callgrind --callgrind-out-file="${profile:-$work}/callgrind.$name.$requests" \
    "$OGIVE" serve -c "$work/ogive.yaml" -s "bench/graphs/$graph/supergraph.graphql" >/dev/null 2>"$work/log" &
  process=$!
  started+=("$process")
  url="$(address "$work/log" serving)/graphql"
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

# Name, graph, operation, configuration, and what a third of Hive Router 0.3.10 is (docs/hot-path.md).
row() {
  local few
  body "$2" "$3" >"$work/body"
  count "$1" "$2" "$4" "$((requests / 2))"
  few="$instructions"
  count "$1" "$2" "$4" "$((requests + requests / 2))"
  local each=$(((instructions - few) / requests))
  awk -v name="$1" -v size="$size" -v each="$each" -v goal="$5" \
    'BEGIN { printf "| %s | %s | %d | %d | %.2f |\n", name, size, each, goal, each / goal }'
}

printf '| request | bytes answered | instructions | goal | of the goal |\n|---|---|---|---|---|\n'
subgraphs shop
row query shop test-query '' 1033000
row query-entities shop test-query 'execution: { reuse: entities }' 1033000
subgraphs single
row trivial single user '' 120000
