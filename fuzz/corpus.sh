#!/usr/bin/env bash
# Makes corpus/ anew: the seeds, the inputs that are there, and those in FOLDER/TARGET, as few as reach as much.
#
#   fuzz/corpus.sh [FOLDER]     FOLDER: what fuzzing has found, fuzz/target/corpus by default
set -euo pipefail
found=$(realpath -m "${1:-$(dirname "$0")/target/corpus}")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
./seeds.py "$work/seeds"
./run.sh build
target=${CARGO_TARGET_DIR:-target}/x86_64-unknown-linux-gnu/release
for name in plan tensor quantize c_abi artifact checkpoint large; do
    mkdir -p "$work/$name" "$work/found/$name" "corpus/$name"
    # A copy, as a running target removes inputs.
    cp -r "$found/$name" "$work/found/" 2>/dev/null || true
    # Edges count, not how often each is taken: else there is an input for every feature, which are far more.
    "$target/$name" -set_cover_merge=1 -use_counters=0 -rss_limit_mb=4096 -close_fd_mask=3 -max_len=4096 \
        "$work/$name" "corpus/$name" "$work/seeds/$name" "$work/found/$name" 2>/dev/null
    rm -rf "corpus/$name"
    mv "$work/$name" "corpus/$name"
    echo "$name: $(find "corpus/$name" -type f | wc -l) inputs, $(cat corpus/"$name"/* | wc -c) bytes"
done
