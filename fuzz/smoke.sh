#!/usr/bin/env bash
# Fuzzes two targets for twenty seconds each, from the committed corpus, and runs the corpora of the others once.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
./run.sh build
for target in tensor c_abi; do
    echo "fuzz: $target for 20 s"
    FUZZ_WORK=$work ./run.sh "$target" 20 2>"$work/log" || {
        tail -n 40 "$work/log"
        exit 1
    }
    grep -E "^stat::number_of_executed_units|^Done" "$work/log"
done
for target in plan quantize artifact checkpoint large; do
    echo "fuzz: the corpus of $target"
    ./run.sh "$target" corpus/"$target"/* >"$work/log" 2>&1 || {
        tail -n 40 "$work/log"
        exit 1
    }
done
