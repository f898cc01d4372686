#!/usr/bin/env bash
# Builds the fuzz targets and runs them.
#
#   fuzz/run.sh build [TARGET...]           builds targets, all without a name
#   fuzz/run.sh TARGET CPU_SECONDS          from the committed corpus, until so much processor time is spent
#   fuzz/run.sh TARGET FILE...              runs inputs once, as to look at a finding
#
# New inputs go to fuzz/target/corpus/TARGET, findings to fuzz/target/findings/TARGET-*; exit 1 on a finding.
# A stable compiler will do: RUSTC_BOOTSTRAP lets it take AddressSanitizer's flag.
set -euo pipefail
cd "$(dirname "$0")"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target} RUST_BACKTRACE=${RUST_BACKTRACE:-0} RUSTC_BOOTSTRAP=1
target=x86_64-unknown-linux-gnu
coverage=(-sanitizer-coverage-level=4 -sanitizer-coverage-inline-8bit-counters -sanitizer-coverage-pc-table
    -sanitizer-coverage-trace-compares)
export RUSTFLAGS="-Zsanitizer=address -Cpasses=sancov-module ${coverage[*]/#/-Cllvm-args=} -Ccodegen-units=1"

build() {
    local bins=()
    for name in "$@"; do
        bins+=(--bin "$name")
    done
    cargo build --quiet --locked --release --target $target "${bins[@]}"
}

if [ "$1" = build ]; then
    shift
    build "$@"
    exit
fi

name=$1
shift
build "$name"
binary=$CARGO_TARGET_DIR/$target/release/$name
# One input: at most a minute, even on a busy machine, and no more memory at once than a hostile file may ask for.
limits=(-timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=512)
# The reader of the tool prints notes.
[ "$name" = checkpoint ] && limits+=(-close_fd_mask=2)
if ! [[ $1 =~ ^[0-9]+$ ]]; then
    exec "$binary" "${limits[@]}" "$@"
fi

seconds=$1
work=${FUZZ_WORK:-target}
mkdir -p "$work/corpus/$name" "$work/findings"
dictionary=()
[ -f "dictionaries/$name" ] && dictionary=(-dict="dictionaries/$name")
"$binary" "${limits[@]}" "${dictionary[@]}" -max_len=4096 -len_control=20 -use_value_profile=0 -print_final_stats=1 \
    -artifact_prefix="$work/findings/$name-" "$work/corpus/$name" "corpus/$name" &
pid=$!
# Processor time, so that a busy machine does not cut a run short.
ticks=$(getconf CLK_TCK)
while kill -0 $pid 2>/dev/null; do
    sleep 1
    read -r -a stat <"/proc/$pid/stat" 2>/dev/null || break
    if [ $(((stat[13] + stat[14]) / ticks)) -ge "$seconds" ]; then
        kill -USR1 $pid 2>/dev/null || true
        break
    fi
done
wait $pid
