#!/usr/bin/env bash
# Where a gateway's CPU time goes: docs/images/flame-LOAD.svg, for each load: `bash bench/flame.sh [LOAD..]`.
#
# Serves the graphs of bench/graphs with one worker, loads it with wrk, and takes samples with perf. Needs perf, wrk, node.
#
#   SECONDS_EACH=5      how long samples are taken
#   OGIVE=PATH          another binary than the release build; it needs its symbols
#   OUT=docs/images     where the images go
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

seconds=${SECONDS_EACH:-5}
out=${OUT:-docs/images}
needs perf wrk node
if [ -z "${OGIVE:-}" ]; then
  cargo build --quiet --release --package ogive-cli
  OGIVE="${CARGO_TARGET_DIR:-target}/release/ogive"
fi

scratch

# NAME GRAPH OPERATION CONNECTIONS CONFIGURATION..
# In "deduplication" all clients are one, and subgraphs hold answers for 10 ms, so that there is something to share; in
# "big-response-held" each answer of eight megabytes waits 100 ms for the second subgraph.
loads=(
  "trivial single user 64"
  "query shop test-query 32"
  "big-response big-response all 4"
  "big-response-held big-response held 10"
  "deduplication shop test-query 200 traffic_shaping: { router: { deduplicate_query: true } }"
  "many-plans many-plans deep 2"
  "many-plans-cold many-plans deep 2 query_planning: { cache: { enabled: false } }"
)
mkdir -p "$out"
for load in "${loads[@]}"; do
  read -r name graph operation connections more <<<"$load"
  case " ${*:-$name} " in *" $name "*) ;; *) continue ;; esac
  folder=bench/graphs/$graph
  hold= token=token
  case $name in
    deduplication) hold='delay: 10ms' token= ;;
    big-response-held) hold=labels ;;
  esac
  stubs "$folder" >"$work/stubs.yaml"
  case $hold in
    labels) sed -i "s|^  labels: \(.*\)|  labels: { sdl: '\1', delay: 100ms }|" "$work/stubs.yaml" ;;
    *) echo "$hold" >>"$work/stubs.yaml" ;;
  esac
  serve subgraphs "$OGIVE" mock --config "$work/stubs.yaml" --listen 127.0.0.1:0
  subgraphs=$pid
  one_worker "$folder" "$url" "headers: { all: { request: [ { propagate: { named: authorization } } ] } }" "$more" >"$work/$name.yaml"
  serve "$name" "$OGIVE" serve --config "$work/$name.yaml" --listen 127.0.0.1:0
  gateway=$pid
  # A token for each request, which is passed on, so that no two of them share what subgraphs are asked, unless they are
  # meant to.
  wrk_script "$folder" "$operation" $token >"$work/$name.lua"
  wrk -t1 -c"$connections" -d"$((seconds + 2))s" --timeout 60 -s "$work/$name.lua" "$url/graphql" >"$work/$name.wrk" &
  generator=$!
  started+=("$generator")
  # The first second is for planning and warming up.
  sleep 1
  perf record --quiet --event cpu-clock --freq 199 --call-graph dwarf,65528 --pid "$gateway" --output "$work/$name.perf" \
    -- sleep "$seconds" 2>"$work/$name.perf.log" || { cat "$work/$name.perf.log" >&2; exit 1; }
  wait "$generator"
  if grep -q 'Non-2xx' "$work/$name.wrk"; then cat "$work/$name.wrk" >&2; exit 1; fi
  end "$gateway" "$subgraphs"
  perf script --input "$work/$name.perf" --no-inline --fields comm,ip,sym 2>/dev/null |
    node bench/flame.mjs "$name: CPU time of the gateway" >"$work/$name.svg"
  mv "$work/$name.svg" "$out/flame-$name.svg"
  rm -f "$work/$name.perf"
  echo "$out/flame-$name.svg"
done
