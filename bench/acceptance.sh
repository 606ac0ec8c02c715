#!/usr/bin/env bash
# Whether the hot path is as fast and as small as it has to be: a table of what is measured, what is required, and whether
# that is met. Gateways take turns on one core each; ratios are taken within a round, then the median of all rounds.
# Usage: bash bench/acceptance.sh [--cache DIR] [--rounds N] [--seconds N] [--out DIR]; a round takes two minutes and the
# defaults eight. Loads take four seconds or what --seconds says, if that is more.
# DIR is where `ogive bench install hive-router` has put it (target/bench); --out is where raw results are kept.
# OGIVE=PATH measures another binary than the one it would build; MARKDOWN=docs/hot-path.md writes the table between the
# markers of that page, too. Needs curl, node, taskset, nginx and wrk, and an otherwise idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

cache=target/bench rounds=3 seconds=4 out=''
while [ $# -gt 0 ]; do
  case "$1" in
    --cache) cache="$2" ;;
    --rounds) rounds="$2" ;;
    --seconds) seconds="$2" ;;
    --out) out="$2" ;;
    *) sed -n 4,8p "$0" >&2; exit 2 ;;
  esac
  shift 2
done
out="${out:-$cache/runs/acceptance}"
needs curl node taskset wrk
binary
OGIVE="$(realpath "$OGIVE")"

work="$(mktemp -d)"
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

# --- Loads: those of bench/scenarios, some with another shape, in a lab of their own.

lab="$work/lab"
mkdir -p "$lab/gateways" "$lab/scenarios"
for part in features.toml graphs tools; do ln -s "$PWD/bench/$part" "$lab/$part"; done
for gateway in ogive hive-router nginx; do cp -r "bench/gateways/$gateway" "$lab/gateways/$gateway"; done
cp -r bench/gateways/ogive "$lab/gateways/ogive-entities"
sed -i 's/^title = .*/title = "Ogive, reuse: entities"/' "$lab/gateways/ogive-entities/gateway.toml"
printf 'execution:\n  reuse: entities\n' >>"$lab/gateways/ogive-entities/ogive.yaml"

# A scenario with another name and an edit.
scenario() { sed -e "${3:-}" "bench/scenarios/$2.toml" >"$lab/scenarios/$1.toml"; }
shape() { echo "s/^shape = .*/shape = { kind = \"$1\", $2, duration = \"${seconds}s\" }/"; }
scenario query-flat-out query "$(shape clients 'clients = 50')"
scenario query-calm query "$(shape rate 'rate = 50')"
scenario sharing-operations deduplication
scenario sharing-requests deduplication '/^mode = /d'
scenario big-response big-response
scenario big-response-held big-response-held
scenario many-plans many-plans
scenario many-plans-cold many-plans-cold
scenario cold-start cold-start
for connections in 50 200 1000; do
  scenario "saturation-$connections" pass-through "$(shape clients "clients = $connections")"
done
cat >"$lab/rounds.toml" <<TOML
keep = true
[[tier]]
gateways = ["ogive", "hive-router"]
rounds = $rounds
[[tier]]
gateways = ["ogive-entities"]
scenarios = ["query-flat-out", "query-calm"]
rounds = $rounds
[[tier]]
gateways = ["nginx"]
scenarios = ["saturation-50", "saturation-200", "saturation-1000"]
rounds = $rounds
TOML

# Runs the scenarios with some beginnings of names; the generator comes first.
loads() {
  local tool="$1" path
  local arguments=()
  shift
  for path in $(cd "$lab/scenarios" && ls -- $1); do arguments+=(--scenario "${path%.toml}"); done
  rm -rf "${out:?}/$tool"
  "$OGIVE" bench --lab "$lab" --cache "$cache" run --tool "$tool" --selection "$lab/rounds.toml" --cap "${seconds}s" \
    "${arguments[@]}" --out "$out/$tool" >"$work/report"
}
mkdir -p "$out"
loads builtin 'query-* sharing-* big-* many-* cold-*'
loads wrk 'saturation-*'

# --- What one process and one request tell.

facts="$out/facts.txt"
: >"$facts"
hold=200
graph=bench/graphs/shop
taskset -c 1 "$OGIVE" mock --supergraph "$graph/supergraph.graphql" --data "$graph/data.json" --delay "${hold}ms" \
  --listen 127.0.0.1:0 >"$work/mock" 2>&1 &
started+=($!)
mock="$(address "$work/mock")"
printf '{"query":"%s"}' "$(grep -v '^ *#' "$graph/operations/test-query.graphql" | tr '\n' ' ')" >"$work/body"
ask() { curl --silent --fail -o /dev/null -w '%{time_total}\n' -H 'content-type: application/json' --data-binary "@$work/body" "$1"; }
resident() { awk '/^VmRSS:/ { print $2 * 1024 }' "/proc/$1/status"; }

# Requests and waves of one query: subgraphs hold each answer, so its time tells how often somebody waited for one.
for mode in all entities; do
  { printf 'listen: 127.0.0.1:0\nexecution: { reuse: %s }\n' "$mode"; subgraph_urls "$graph" "$mock"; } >"$work/$mode.yaml"
  "$OGIVE" serve -c "$work/$mode.yaml" -s "$graph/supergraph.graphql" >/dev/null 2>"$work/$mode.log" &
  process=$!
  started+=("$process")
  url="$(address "$work/$mode.log" serving)/graphql"
  sleep 1
  if [ "$mode" = all ]; then echo "idle $(resident "$process")" >>"$facts"; fi
  # The first request also plans.
  ask "$url" >/dev/null
  curl --silent --fail -X POST -o /dev/null "$mock/stats/reset"
  for _ in 1 2 3; do ask "$url"; done | sort -g | head -1 |
    awk -v hold="$hold" -v mode="$mode" '{ printf "waves_%s %d\n", mode, $1 * 1000 / hold }' >>"$facts"
  curl --silent --fail "$mock/stats" | node -e "
    const { total } = JSON.parse(require('fs').readFileSync(0, 'utf8'));
    console.log('requests_$mode', total.requests / 3);" >>"$facts"
  # Workers give memory back after five to ten seconds of rest.
  if [ "$mode" = all ]; then
    sleep 12
    echo "idle_after $(resident "$process")" >>"$facts"
  fi
done

# How long a subgraph really holds an answer for 10 ms: its timer counts whole milliseconds.
taskset -c 1 "$OGIVE" mock --supergraph "$graph/supergraph.graphql" --data "$graph/data.json" --delay 10ms \
  --listen 127.0.0.1:0 >"$work/mock.10" 2>&1 &
started+=($!)
mock="$(address "$work/mock.10")"
curl --silent --fail -o /dev/null -w '%{time_total}\n' -H 'content-type: application/json' \
  --data-binary '{"query":"{ users { id } }"}' "$mock/graphql/accounts?n=[1-101]" 2>/dev/null |
  sort -g | sed -n 51p | awk '{ print "held", $1 * 1000 }' >>"$facts"
echo "binary $(stat -L -c %s "$OGIVE")" >>"$facts"

node bench/acceptance.mjs "$out" | tee "$work/table"
if [ -n "${MARKDOWN:-}" ]; then
  awk -v table="$work/table" '
    /^<!-- acceptance: end -->/ { inside = 0 }
    !inside { print }
    /^<!-- acceptance: begin -->/ { inside = 1; while ((getline line < table) > 0) print line }
  ' "$MARKDOWN" >"$work/page"
  cp "$work/page" "$MARKDOWN"
fi
