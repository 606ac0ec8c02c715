#!/bin/sh
# Builds one fuzz target with the stable compiler and runs it for a bounded time.
#
#   fuzz/run.sh TARGET SECONDS [libFuzzer options]
#
# Starts from fuzz/seeds/TARGET and fuzz/TARGET.dict; new inputs stay in the target directory, so a run never
# changes the repository. Exits non-zero on a crash and leaves the input as crash-* in the artifacts directory.
set -eu

target=${1:?usage: fuzz/run.sh TARGET SECONDS [libFuzzer options]}
seconds=${2:?usage: fuzz/run.sh TARGET SECONDS [libFuzzer options]}
shift 2

here=$(cd "$(dirname "$0")" && pwd)
build=${CARGO_TARGET_DIR:-$here/target}/fuzz
corpus=$build/corpus/$target
artifacts=$build/artifacts/$target
mkdir -p "$corpus" "$artifacts"

features=
[ "$target" != token ] || features=--features=token

# What cargo-fuzz sets, minus the sanitizers that need a nightly compiler. --target keeps the flags away from
# build scripts.
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing" \
    cargo build --release --manifest-path "$here/Cargo.toml" --bin "$target" $features \
    --target "$host" --target-dir "$build"

dictionary=
[ -f "$here/$target.dict" ] && dictionary=-dict=$here/$target.dict

# Taking white space out goes in steps of 4,096 bytes; inputs have to be longer for anything to be carried from one
# to the next.
case $target in
    json) longest=16384 ;;
    *) longest=4096 ;;
esac

exec "$build/$host/release/$target" \
    -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -max_len="$longest" -print_final_stats=1 \
    -artifact_prefix="$artifacts/" $dictionary "$@" "$corpus" "$here/seeds/$target"
