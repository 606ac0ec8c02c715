#!/usr/bin/env bash
# What a rate that is shared through Redis adds to a request: latencies as `wrk` sees them, of a rate each process has for
# itself, one in Redis, and none, in turns. Prints a Markdown table of medians over the rounds. One connection shows what one
# request takes; with more the gateway has no rest, and a request waits for others, too.
# Usage: bash bench/redis.sh [--markdown FILE] [--rounds N] [--seconds N] [--connections N]
# OGIVE=PATH measures another binary than the one it would build. Needs redis-server, taskset and wrk: the gateway has core 0,
# all others core 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

markdown='' rounds=7 seconds=4 connections=1
while [ $# -gt 0 ]; do
  case "$1" in
    --markdown) markdown="$2" ;;
    --rounds) rounds="$2" ;;
    --seconds) seconds="$2" ;;
    --connections) connections="$2" ;;
    *) sed -n 5,7p "$0" >&2; exit 2 ;;
  esac
  shift 2
done
needs redis-server taskset wrk
binary
scratch

port=6390
taskset -c 1 redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$work" >"$work/redis.log" &
started+=("$!")
serve mock taskset -c 1 "$OGIVE" mock --config examples/demo/mock.yaml --listen 127.0.0.1:0
mock="$url"
printf '%s\n' 'wrk.method = "POST"' 'wrk.headers["content-type"] = "application/json"' \
  'wrk.body = [[{"query":"{ me { name } }"}]]' >"$work/ask.lua"

# NAME RATE: one gateway, which stays.
gateway() {
  {
    echo 'http: { workers: 1 }'
    printf 'override_subgraph_url:\n'
    for subgraph in accounts inventory products reviews; do echo "  $subgraph: $mock/graphql/$subgraph"; done
    echo "store: { redis: { urls: ['redis://127.0.0.1:$port'], namespace: bench } }"
    echo "$2"
  } >"$work/$1.yaml"
  serve "$1" taskset -c 0 "$OGIVE" serve -c "$work/$1.yaml" -s examples/demo/supergraph.graphql --listen 127.0.0.1:0
  urls[$1]="$url/graphql"
}
declare -A urls
rate() { echo "traffic_shaping: { router: { rate_limits: [{ name: all, $1 capacity: 1000000000, interval: 1h }] } }"; }
gateway none ''
gateway process "$(rate '')"
gateway redis "$(rate 'storage: redis,')"

titles() { case "$1" in none) echo 'no rate' ;; process) echo 'a rate of each process' ;; redis) echo 'a rate in Redis' ;; esac; }
for round in $(seq "$rounds"); do
  for name in none process redis; do
    taskset -c 1 wrk -t1 -c"$connections" -d"${seconds}s" --latency -s "$work/ask.lua" "${urls[$name]}" >"$work/said"
    if grep -q 'Non-2xx' "$work/said"; then cat "$work/said" >&2; exit 1; fi
    awk -v name="$name" '
      function us(text) { return text ~ /us$/ ? text + 0 : text ~ /ms$/ ? text * 1000 : text * 1000000 }
      $1 == "50%" { p50 = us($2) } $1 == "99%" { p99 = us($2) } $1 == "Requests/sec:" { rate = $2 }
      END { print name, p50, p99, rate }' "$work/said" >>"$work/rows"
  done
done
{
  echo '| | p50, µs | p99, µs | p99 beside that of no rate | requests per second |'
  echo '|---|---|---|---|---|'
  for name in none process redis; do
    of() { awk -v name="$1" -v at="$2" '$1 == name { print $at }' "$work/rows" | median; }
    echo "| $(titles "$name") | $(of "$name" 2) | $(of "$name" 3) | $(awk -v a="$(of "$name" 3)" -v b="$(of none 3)" 'BEGIN { printf "%+.0f µs", a - b }') | $(of "$name" 4) |"
  done
} >"$work/table"
cat "$work/table"
if [ -n "$markdown" ]; then write_between redis "$markdown" "$work/table"; fi
