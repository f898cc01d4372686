#!/usr/bin/env bash
# Builds the check program on the CPU shim and runs every part of it.
#
#   kernels/tools/shim.sh [COMPILER...]       g++ and clang++-19 if none is named
#   kernels/tools/shim.sh --control           breaks the kernels in a copy, one fault at a time: each must be seen
set -euo pipefail
kernels=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$kernels/../target}/cuda-shim
vectors=$kernels/../tests/vectors
# Fibers and the stack copies that find uses after return do not go together well.
export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0

build() {  # COMPILER KERNELS OUT
    make -s -j2 -C "$2/shim" CXX="$1" OUT="$3"
}

control() {
    local copy=$target/control faults=0
    # File, what is replaced, by what; then the parts that must fail.
    while IFS='|' read -r file from to parts; do
        faults=$((faults + 1))
        rm -rf "$copy"
        mkdir -p "$copy/include"
        cp "$kernels/../include/"*.h "$copy/include/"
        cp -r "$kernels" "$copy/kernels"
        grep -qF -- "$from" "$copy/kernels/$file" || { echo "control: $file has no: $from"; exit 1; }
        FROM=$from TO=$to perl -0pi -e 's/\Q$ENV{FROM}\E/$ENV{TO}/' "$copy/kernels/$file"
        build g++ "$copy/kernels" "$copy/out"
        # shellcheck disable=SC2086
        if (cd "$kernels/test" && "$copy/out/check" $parts) > "$copy/log" 2>&1; then
            echo "control: not seen: $file: $from -> $to"
            exit 1
        fi
        echo "control: seen: $file: $from -> $to"
    done << FAULTS
ninfer_codec.cuh|(row % 32) * 16|(row % 32) * 4|vectors $vectors
ninfer_codec.cuh|if (word == 0) word = 1;||vectors $vectors
ninfer_codec.cuh|div_rn(1.0f, widen_f16(word))|1.0f / widen_f16(word) * 1.0000001f|vectors $vectors
common.cuh|if (bytes >= 16 && aligned<Chunk16>(p)) {|if (aligned<Chunk16>(p)) {|random
common.cuh|bytes >= 16 && aligned<Chunk16>(p)|bytes >= 16|random
decode.cu|        __syncwarp();||digests digests.txt
quantize.cu|__shfl_xor_sync(0xffffffffu, amax, distance)|amax|digests digests.txt
validate.cu|if (c >= k) {|if (c > k) {|random
launch.cu|check_rows(queue, a);||random
FAULTS
    echo "control: $faults faults, all seen"
}

if [ "${1:-}" = --control ]; then
    control
    exit
fi
[ $# -gt 0 ] || set -- g++ clang++-19
for compiler in "$@"; do
    command -v "$compiler" > /dev/null || { echo "no compiler $compiler"; exit 1; }
    build "$compiler" "$kernels" "$target/$compiler"
    "$target/$compiler/check" vectors "$vectors" digests "$kernels/test/digests.txt" refusals engine random far \
        exhaustive bench 0.002 | grep -v '^|'
done
