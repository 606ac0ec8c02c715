#!/usr/bin/env bash
# Long forms of the load tests, on what ships; their tables go into docs/load.md.
# Usage: bash bench/load.sh swaps | idle | neighbours | soak [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."

export OGIVE_LOAD_MARKDOWN="${OGIVE_LOAD_MARKDOWN:-$PWD/docs/load.md}"
cli() { cargo test --release -p ogive-cli --test it -- "$1" --nocapture; }

case "${1:-}" in
  swaps)
    export OGIVE_SWAPS_SECONDS="${2:-60}"
    cli swaps::
    ;;
  idle) cli idle:: ;;
  neighbours) cargo test --release -p ogive-e2e --test it -- neighbours --ignored --nocapture ;;
  soak)
    export OGIVE_SOAK_SECONDS="${2:-1800}" OGIVE_SOAK_RATE="${OGIVE_SOAK_RATE:-300}"
    cli soak::
    ;;
  *)
    sed -n 3p "$0" >&2
    exit 2
    ;;
esac
