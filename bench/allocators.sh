#!/usr/bin/env bash
# Compares allocators by throughput and by resident memory: `bash bench/allocators.sh [ROUNDS] [SECONDS]`.
#
# Builds the product with each allocator, and lets them take turns before the same subgraphs under the same loads of
# wrk, one worker thread each. Prints a Markdown table of medians. Needs wrk, and an otherwise idle machine for figures
# worth keeping. With the defaults it takes two minutes and a half, builds not counted.
#
#   ALLOCATORS="mimalloc jemalloc system"   which ones
#   PROFILE=release                         or dist
#   REST=30                                 seconds of rest before memory is read again
#   BINARIES=FOLDER                         takes FOLDER/ogive-ALLOCATOR where it is there, and leaves what it builds there
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

rounds=${1:-3}
seconds=${2:-3}
allocators=${ALLOCATORS:-"mimalloc jemalloc system"}
profile=${PROFILE:-release}
rest=${REST:-30}
needs wrk

scratch
target=${CARGO_TARGET_DIR:-target}

binaries=${BINARIES:-$work}
mkdir -p "$binaries"
for allocator in $allocators; do
  [ -x "$binaries/ogive-$allocator" ] && continue
  features=()
  [ "$allocator" = system ] || features=(--features "$allocator")
  cargo build --quiet --profile "$profile" --package ogive-cli --no-default-features "${features[@]}"
  cp "$target/$profile/ogive" "$binaries/ogive-$allocator"
done
subgraphs_binary="$binaries/ogive-${allocators%% *}"

resident() { awk '/^Rss:/ { print $2 }' "/proc/$1/smaps_rollup"; }

# NAME GRAPH OPERATION CONNECTIONS
loads=(
  "trivial single user 64"
  "query shop test-query 64"
  "big big-response all 4"
)
declare -A persecond idle after rested resting ended
for load in "${loads[@]}"; do
  read -r name graph operation connections <<<"$load"
  folder=bench/graphs/$graph
  serve_subgraphs "$folder" "$subgraphs_binary"
  subgraphs=$pid
  one_worker "$folder" "$url" >"$work/$name.yaml"
  wrk_script "$folder" "$operation" >"$work/$name.lua"
  for round in $(seq "$rounds"); do
    for allocator in $allocators; do
      serve "$name-$allocator-$round" "$binaries/ogive-$allocator" serve --config "$work/$name.yaml" --listen 127.0.0.1:0
      gateway=$pid
      sleep 1
      idle[$name-$allocator]+=" $(resident "$gateway")"
      report=$(wrk -t1 -c"$connections" -d"${seconds}s" -s "$work/$name.lua" "$url/graphql")
      case $report in *Non-2xx*) echo "$name, $allocator: $report" >&2; exit 1 ;; esac
      persecond[$name-$allocator]+=" $(awk '/Requests\/sec/ { print $2 }' <<<"$report")"
      after[$name-$allocator]+=" $(resident "$gateway")"
      if [ "$round" = "$rounds" ]; then
        # The last one of each rests while others work.
        resting[$name-$allocator]=$gateway
        ended[$name-$allocator]=$SECONDS
      else
        end "$gateway"
      fi
    done
  done
  end "$subgraphs"
done
for load in "${loads[@]}"; do
  for allocator in $allocators; do
    key=${load%% *}-$allocator
    left=$((${ended[$key]} + rest - SECONDS))
    [ "$left" -le 0 ] || sleep "$left"
    rested[$key]=$(resident "${resting[$key]}")
  done
done

{
  echo "\`bash bench/allocators.sh $rounds $seconds\`: medians of $rounds rounds of $seconds s, one worker, profile \`$profile\`."
  echo
  echo "| load | allocator | answers/s | idle, KiB | after load, KiB | after at least $rest s of rest, KiB |"
  echo "|---|---|---|---|---|---|"
  for load in "${loads[@]}"; do
    name=${load%% *}
    for allocator in $allocators; do
      key=$name-$allocator
      echo "| $name | $allocator | $(median <<<"${persecond[$key]}") | $(median <<<"${idle[$key]}") | $(median <<<"${after[$key]}") | ${rested[$key]} |"
    done
  done
}
