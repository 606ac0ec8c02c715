#!/usr/bin/env bash
# Whether the hot path is as fast and as small as it has to be: a table of what is measured, what is required, and whether
# that is met. Gateways take turns on one core each; ratios are taken within a round, then the median of all rounds.
# Usage: bash bench/acceptance.sh [--only PART].. [--cache DIR] [--rounds N] [--seconds N] [--out DIR]; a round takes two
# minutes and the defaults eight. Loads take four seconds or what --seconds says, if that is more.
# Parts are query, sharing, big, many, saturation and facts. The others stay in the table as they were measured last.
# DIR is where `ogive bench install hive-router` has put it (target/bench); --out is where raw results are kept.
# OGIVE=PATH measures another binary than the one it would build; MARKDOWN=docs/hot-path.md writes the table between the
# markers of that page, too. Needs curl, node, taskset, nginx and wrk, and an otherwise idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/common.sh

cache=target/bench rounds=3 seconds=4 out='' parts=()
all=(query sharing big many saturation facts)
usage() { sed -n 4,9p "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
    --only)
      case " ${all[*]} " in *" $2 "*) parts+=("$2") ;; *) usage ;; esac
      ;;
    --cache) cache="$2" ;;
    --rounds) rounds="$2" ;;
    --seconds) seconds="$2" ;;
    --out) out="$2" ;;
    *) usage ;;
  esac
  shift 2
done
out="${out:-$cache/runs/acceptance}"
if [ ${#parts[@]} = 0 ]; then parts=("${all[@]}"); fi
needs curl node taskset wrk
binary
OGIVE="$(realpath "$OGIVE")"

scratch

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
# As many clients as keep every gateway busy although subgraphs hold each answer for 10 ms.
scenario query-flat-out query "$(shape clients 'clients = 350')"
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

# PART GENERATOR WORD: runs the scenarios whose names begin with a word.
loads() {
  local part="$1" tool="$2" path
  local arguments=()
  for path in "$lab/scenarios/$3"-*.toml; do arguments+=(--scenario "$(basename "$path" .toml)"); done
  "$OGIVE" bench --lab "$lab" --cache "$cache" run --tool "$tool" --selection "$lab/rounds.toml" --cap "${seconds}s" \
    "${arguments[@]}" --out "$out/$part" >"$work/report"
}

# --- What one process and one request tell.

graph=bench/graphs/shop
# Serves the subgraphs of that graph, which hold each answer for a time; sets `url`.
held() {
  serve "mock-$1" taskset -c 1 "$OGIVE" mock --supergraph "$graph/supergraph.graphql" --data "$graph/data.json" --delay "$1" \
    --listen 127.0.0.1:0
}
# Starts a gateway with an execution mode before subgraphs at an address; sets `pid` and `url`.
gateway() {
  { printf 'execution: { reuse: %s }\n' "$1"; subgraph_urls "$graph" "$2"; } >"$work/$1.yaml"
  serve "$1" "$OGIVE" serve -c "$work/$1.yaml" -s "$graph/supergraph.graphql" --listen 127.0.0.1:0
  url+=/graphql
}
printf '{"query":"%s"}' "$(grep -v '^ *#' "$graph/operations/test-query.graphql" | tr '\n' ' ')" >"$work/body"
ask() { curl --silent --fail -o /dev/null -w '%{time_total}\n' -H 'content-type: application/json' --data-binary "@$work/body" "$1"; }
resident() { awk '/^VmRSS:/ { print $2 * 1024 }' "/proc/$1/status"; }

# Requests and waves of one query: subgraphs hold each answer, so its time tells how often somebody waited for one.
waves() {
  local hold=200 mock mode
  held "${hold}ms"
  mock="$url"
  for mode in all entities; do
    gateway "$mode" "$mock"
    # The first request also plans.
    ask "$url" >/dev/null
    curl --silent --fail -X POST -o /dev/null "$mock/stats/reset"
    for _ in 1 2 3; do ask "$url"; done | sort -g | head -1 |
      awk -v hold="$hold" -v mode="$mode" '{ printf "waves_%s %d\n", mode, $1 * 1000 / hold }'
    curl --silent --fail "$mock/stats" | node -e "
      const { total } = JSON.parse(require('fs').readFileSync(0, 'utf8'));
      console.log('requests_$mode', total.requests / 3);"
    end "$pid"
  done
  # How long a subgraph really holds an answer for 10 ms, as a client sees it.
  held 10ms
  curl --silent --fail -o /dev/null -w '%{time_total}\n' -H 'content-type: application/json' \
    --data-binary '{"query":"{ users { id } }"}' "$url/graphql/accounts?n=[1-101]" 2>/dev/null |
    sort -g | sed -n 51p | awk '{ print "held", $1 * 1000 }'
}

# Memory of a gateway before and after a few requests, and the size of its program.
sizes() {
  held 0ms
  gateway all "$url"
  sleep 1
  echo "idle $(resident "$pid")"
  for _ in 1 2 3 4; do ask "$url" >/dev/null; done
  # Workers give memory back after five to ten seconds of rest.
  sleep 12
  echo "idle_after $(resident "$pid")"
  echo "binary $(stat -L -c %s "$OGIVE")"
}

# Processor time of the whole gateway for an answer of eight megabytes, beside validating and copying the same bytes, in
# turns on one core: milliseconds, medians; the ratio is taken within a round.
copying() {
  local big=bench/graphs/big-response icount="${CARGO_TARGET_DIR:-target}/release/ogive-icount" requests=50 subgraphs round
  local ticks before after
  ticks="$(getconf CLK_TCK)"
  cargo build --quiet --release --package ogive-icount
  serve_subgraphs "$big"
  subgraphs=$pid
  one_worker "$big" "$url" >"$work/copying.yaml"
  serve copying taskset -c 0 "$OGIVE" serve -c "$work/copying.yaml" --listen 127.0.0.1:0
  printf '{"query":"%s"}' "$(json_text "$big/operations/all.graphql")" >"$work/big"
  big_ask() { taskset -c 1 curl --silent --fail -o "$1" -H 'content-type: application/json' --data-binary "@$work/big" "$2"; }
  big_ask "$work/big-answer" "$url/graphql"
  for round in $(seq "$rounds"); do
    # User and system time; the program's name has no spaces.
    before="$(awk '{ print $14, $15 }' "/proc/$pid/stat")"
    big_ask /dev/null "$url/graphql?n=[1-$requests]"
    after="$(awk '{ print $14, $15 }' "/proc/$pid/stat")"
    taskset -c 0 "$icount" plain "$work/big-answer" |
      awk -v before="$before" -v after="$after" -v n="$requests" -v ticks="$ticks" '
        /^plain_median/ {
          split(before, b); split(after, a)
          user = (a[1] - b[1]) / ticks * 1000 / n
          print user, (a[2] - b[2]) / ticks * 1000 / n, $2, user / $2
        }'
  done >"$work/copying"
  local column=1 name
  for name in big_user big_system big_plain big_ratio; do
    echo "$name $(awk -v at="$column" '{ print $at }' "$work/copying" | median)"
    column=$((column + 1))
  done
  end "$pid" "$subgraphs"
}

for part in "${parts[@]}"; do
  rm -rf "${out:?}/$part"
  mkdir -p "$out/$part"
  case "$part" in
    query) loads "$part" builtin query; waves >"$out/$part/facts.txt" ;;
    saturation) loads "$part" wrk saturation ;;
    big)
      loads "$part" builtin big
      copying >"$out/$part/facts.txt"
      ;;
    facts) loads "$part" builtin cold; sizes >"$out/$part/facts.txt" ;;
    *) loads "$part" builtin "$part" ;;
  esac
done

node bench/acceptance.mjs "$out" "${parts[@]}" | tee "$work/table"
if [ -n "${MARKDOWN:-}" ]; then
  write_between acceptance "$MARKDOWN" "$work/table"
fi
