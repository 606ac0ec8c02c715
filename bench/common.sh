# What the programs of this folder share; they run in the root of the repository.

# Ends the program unless all these tools are installed.
needs() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { echo "error: $tool is not installed" >&2; exit 1; }
  done
}

# Sets OGIVE to the binary as it ships, built now, unless it names another.
binary() {
  if [ -z "${OGIVE:-}" ]; then
    cargo build --quiet --profile dist --package ogive-cli
    OGIVE="${CARGO_TARGET_DIR:-target}/dist/ogive"
  fi
}

# Makes a folder, `work`; when the program ends, it goes, and so do the processes in `started`.
scratch() {
  work="$(mktemp -d)"
  started=()
  trap 'kill "${started[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
}

# NAME COMMAND..: starts a process that writes to $work/NAME.log and waits for the address it says; sets `pid`, `url`.
serve() {
  local name="$1"
  shift
  "$@" >"$work/$name.log" 2>&1 &
  pid=$!
  started+=("$pid")
  url="$(address "$work/$name.log")"
}

# Ends processes and waits until they are gone.
end() {
  kill "$@"
  wait "$@" 2>/dev/null || true
}

# Waits for a line with some word and an address in a log, and gives the address.
address() {
  local _
  for _ in $(seq 600); do
    if grep "${2:-}" "$1" | grep -om1 'https\?://127.0.0.1:[0-9]*'; then return; fi
    sleep 0.05
  done
  cat "$1" >&2
  return 1
}

# The configuration of `ogive mock` for the graph in a folder.
stubs() {
  local folder="$1" sdl
  if [ -e "$folder/data.json" ]; then echo "data: $PWD/$folder/data.json"; fi
  if [ "$(basename "$folder")" = big-response ]; then
    echo "generate:"
    echo "  seed: 1"
    echo "  lengths: { Node.floats: 21..64, Node.ints: 21..64, Node.strings: 21..64 }"
    echo "  texts: { Node.string: 0..128, Node.strings: 0..128 }"
  fi
  echo "subgraphs:"
  for sdl in "$folder"/subgraphs/*; do
    echo "  $(basename "$sdl" .graphql): $PWD/$sdl"
  done
}

# The part of a gateway's configuration that sends requests to the stubs of a folder at an address.
subgraph_urls() {
  local folder="$1" address="$2" sdl subgraph
  echo "override_subgraph_url:"
  for sdl in "$folder"/subgraphs/*; do
    subgraph="$(basename "$sdl" .graphql)"
    echo "  $subgraph: $address/graphql/$subgraph"
  done
}

# A file as the inside of a JSON string.
json_text() {
  sed 's/\\/\\\\/g; s/"/\\"/g' "$1" | awk '{ printf "%s\\n", $0 }'
}

# FOLDER [BINARY]: serves the subgraphs of the graph in a folder; sets `pid` and `url`.
serve_subgraphs() {
  local name
  name="subgraphs-$(basename "$1")"
  stubs "$1" >"$work/$name.yaml"
  serve "$name" "${2:-$OGIVE}" mock --config "$work/$name.yaml" --listen 127.0.0.1:0
}

# FOLDER ADDRESS [LINE..]: the configuration of a gateway with one worker for the graph in a folder, whose subgraphs are at
# an address, with more lines.
one_worker() {
  local folder="$1" address="$2"
  shift 2
  echo "supergraph: { path: '$PWD/$folder/supergraph.graphql' }"
  echo "http: { workers: 1 }"
  printf '%s\n' "$@"
  subgraph_urls "$folder" "$address"
}

# FOLDER OPERATION [token]: a script for wrk that asks an operation again and again; with `token`, each request has a token
# of its own.
wrk_script() {
  cat <<LUA
wrk.method = 'POST'
wrk.headers['content-type'] = 'application/json'
wrk.body = [==[{"query":"$(json_text "$1/operations/$2.graphql")"}]==]
LUA
  if [ "${3:-}" != token ]; then return; fi
  cat <<'LUA'
local nth = 0
function request()
  nth = nth + 1
  wrk.headers['authorization'] = 'Bearer ' .. nth
  return wrk.format()
end
LUA
}

# The median of the numbers in the input.
median() { tr ' ' '\n' | sed '/^$/d' | sort -g | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# NAME PAGE TEXT: puts the text of a file between the markers of that name in a page.
write_between() {
  awk -v begin="<!-- $1: begin -->" -v end="<!-- $1: end -->" -v text="$3" '
    index($0, end) == 1 { inside = 0 }
    !inside { print }
    index($0, begin) == 1 { inside = 1; while ((getline line < text) > 0) print line }
  ' "$2" >"$work/page"
  cp "$work/page" "$2"
}
