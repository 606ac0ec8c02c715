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

# Waits for a line with some word and an address in a log, and gives the address.
address() {
  local _
  for _ in $(seq 600); do
    if grep -m1 "${2:-}" "$1" | grep -om1 'https\?://127.0.0.1:[0-9]*'; then return; fi
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
