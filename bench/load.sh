#!/usr/bin/env bash
# Long forms of the load tests, on what ships; their tables go into docs/load.md.
# Usage: bash bench/load.sh swaps | newcomers | idle | unfinished | neighbours | memory | soak [SECONDS]
# OGIVE=PATH loads another binary. The attackers of `neighbours` are in OGIVE_E2E=PATH, if given: a test binary that
# `cargo test --release -p ogive-e2e --no-run` has built.
set -euo pipefail
cd "$(dirname "$0")/.."

export OGIVE_LOAD_MARKDOWN="${OGIVE_LOAD_MARKDOWN:-$PWD/docs/load.md}"
if [ -n "${OGIVE:-}" ]; then
  export OGIVE_LOAD_BINARY
  OGIVE_LOAD_BINARY="$(realpath "$OGIVE")"
fi
cli() { cargo test --release -p ogive-cli --test it -- "$1" --nocapture; }

case "${1:-}" in
  swaps)
    export OGIVE_SWAPS_SECONDS="${2:-60}"
    cli swaps::
    ;;
  newcomers)
    if [ -z "${OGIVE_LOAD_BINARY:-}" ]; then
      cargo build --release -p ogive-cli
      export OGIVE_LOAD_BINARY="${CARGO_TARGET_DIR:-$PWD/target}/release/ogive"
    fi
    cli newcomers_do_not_wait
    ;;
  idle) cli idle:: ;;
  unfinished)
    export OGIVE_UNFINISHED="${2:-2400}"
    cli unfinished::
    ;;
  neighbours | memory)
    export OGIVE_NEIGHBOURS_SECONDS="${2:-200}" OGIVE_MEMORY_SECONDS="${2:-10}"
    test=neighbours
    [ "$1" = neighbours ] || test=attacks_repeated_by_fifty_connections
    if [ -z "${OGIVE_LOAD_BINARY:-}" ]; then
      cargo build --release -p ogive-cli
      export OGIVE_LOAD_BINARY="${CARGO_TARGET_DIR:-$PWD/target}/release/ogive"
    fi
    if [ -n "${OGIVE_E2E:-}" ]; then
      e2e="$(realpath "$OGIVE_E2E")"
      # As cargo runs it.
      cd crates/e2e
      "$e2e" "$test" --ignored --nocapture
    else
      cargo test --release -p ogive-e2e --test it -- "$test" --ignored --nocapture
    fi
    ;;
  soak)
    export OGIVE_SOAK_SECONDS="${2:-1800}" OGIVE_SOAK_RATE="${OGIVE_SOAK_RATE:-300}"
    cli soak::
    ;;
  *)
    sed -n 3p "$0" >&2
    exit 2
    ;;
esac
