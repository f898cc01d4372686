#!/usr/bin/env bash
# Prints how many lines of src/ are reached, file by file, and lists those that are not.
#
#   scripts/coverage.sh tests      by the tests of the codec, without src/ffi: C programs test that, unmeasured
#   scripts/coverage.sh corpus     by the committed fuzz corpus alone
#   scripts/coverage.sh both       by one or the other
#
# Every backend counts that the processor has. src/cuda, which needs a device, does not, nor do files of tests.
# llvm-profdata and llvm-cov must be of the compiler's LLVM; on Debian the package llvm-VERSION has them.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-}
version=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
for tool in profdata cov; do
    command -v "llvm-$tool-$version" >/dev/null || {
        echo "llvm-$tool-$version is missing: install llvm-$version"
        exit 1
    }
done

export CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}") RUST_BACKTRACE=0 CI=true
base=$CARGO_TARGET_DIR/coverage
mkdir -p "$base"
# Only the packages of the workspace are instrumented, so that the others need not be built again.
printf '#!/bin/sh\nexec "$@" -Cinstrument-coverage\n' >"$base/rustc"
chmod +x "$base/rustc"

# Names of the programs that a cargo command makes.
programs() {
    "$@" --message-format=json 2>"$base/build.log" | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line) if line.startswith("{") else {}
    if message.get("executable"):
        print(message["executable"])'
}

run_tests() {
    export RUSTC_WORKSPACE_WRAPPER=$base/rustc
    local flags=(--package ninfer-codec --features internals --lib) file name
    for file in tests/*.rs; do
        name=$(basename "$file" .rs)
        case $name in
            cuda*) ;; # a device's
            *) flags+=(--test "$name") ;;
        esac
    done
    mapfile -t objects < <(programs cargo test --quiet --no-run "${flags[@]}")
    cargo test --quiet --no-fail-fast "${flags[@]}" >"$base/tests.log"
}

run_corpus() {
    # To this package the codec is one of the others, so everything is instrumented, in a folder of its own.
    unset RUSTC_WORKSPACE_WRAPPER
    export CARGO_TARGET_DIR=$base/corpus RUSTFLAGS=-Cinstrument-coverage
    local object name
    mapfile -t objects < <(programs cargo build --quiet --release --manifest-path fuzz/Cargo.toml)
    for object in "${objects[@]}"; do
        name=$(basename "$object")
        "$object" fuzz/corpus/"$name"/* >"$base/$name.log" 2>&1 || {
            tail -n 20 "$base/$name.log"
            exit 1
        }
    done
}

# Runs with a profile and writes which lines were reached.
measure() {
    local profiles=$base/profiles-$1 object
    rm -rf "$profiles"
    mkdir -p "$profiles"
    export LLVM_PROFILE_FILE=$profiles/%m-%p.profraw
    "run_$1"
    [ ${#objects[@]} -gt 0 ] || {
        cat "$base/build.log"
        exit 1
    }
    "llvm-profdata-$version" merge --sparse "$profiles" -o "$base/$1.profdata"
    # Object by object: the same function may be compiled in several of them, and differently.
    for object in "${objects[@]}"; do
        "llvm-cov-$version" export --format=lcov --instr-profile="$base/$1.profdata" "$object" --sources "$PWD/src"
    done >"$base/$1.lcov" 2>"$base/export.log"
}

case $what in
    tests | corpus) runs=("$what") ;;
    both) runs=(tests corpus) ;;
    *)
        echo "usage: scripts/coverage.sh tests | corpus | both"
        exit 2
        ;;
esac
for run in "${runs[@]}"; do
    measure "$run"
done
scripts/coverage.py "$PWD" "${runs[@]/%/.lcov}" "$base"
