#!/usr/bin/env bash
# Builds the check program on the CPU shim and runs every part of it.
#
#   kernels/tools/shim.sh [COMPILER...]       g++ and clang++-19 if none is named
#   kernels/tools/shim.sh --control           breaks the kernels in a copy, one fault at a time: each must be seen
#
# The program is linked with the C archive of the host library, made here by cargo, and compares with it byte by byte.
set -euo pipefail
kernels=$(cd "$(dirname "$0")/.." && pwd)
cargo_target=${CARGO_TARGET_DIR:-$kernels/../target}
target=$cargo_target/cuda-shim
library=$cargo_target/archive/libninfer_codec.a
vectors=$kernels/../tests/vectors
# Fibers and the stack copies that find uses after return do not go together well.
export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0

build() {  # COMPILER KERNELS OUT
    make -s -j2 -C "$2/shim" CXX="$1" OUT="$3" LIBRARY="$library"
}

control() {
    local copy=$target/control faults=0
    build g++ "$kernels" "$target/g++"
    # File, what is replaced, by what; the parts that must fail; and by whom it must be seen.
    while IFS='|' read -r file from to parts by; do
        faults=$((faults + 1))
        # With their times, so that only what the fault touches is built anew.
        rm -rf "$copy"
        mkdir -p "$copy/include"
        cp -p "$kernels/../include/"*.h "$copy/include/"
        cp -rp "$kernels" "$copy/kernels"
        cp -rp "$target/g++" "$copy/out"
        grep -qF -- "$from" "$copy/kernels/$file" || { echo "control: $file has no: $from"; exit 1; }
        FROM=$from TO=$to perl -0pi -e 's/\Q$ENV{FROM}\E/$ENV{TO}/' "$copy/kernels/$file"
        build g++ "$copy/kernels" "$copy/out"
        # shellcheck disable=SC2086
        if (cd "$kernels/test" && "$copy/out/check" $parts) > "$copy/log" 2>&1; then
            echo "control: not seen: $file: $from -> $to"
            exit 1
        fi
        local sign="FAIL .*the library's"
        [ "$by" = sanitizer ] && sign='ERROR: AddressSanitizer|runtime error'
        grep -qE "$sign" "$copy/log" || { tail -5 "$copy/log"; echo "control: not seen by the $by: $file: $from"; exit 1; }
        echo "control: seen by the $by: $file: $from -> $to"
    done << FAULTS
ninfer_codec.cuh|(row % 32) * 16|(row % 32) * 4|vectors $vectors|library
ninfer_codec.cuh|if (word == 0) word = 1;||vectors $vectors|library
ninfer_codec.cuh|div_rn(1.0f, widen_f16(word))|1.0f / widen_f16(word) * 1.0000001f|vectors $vectors|library
common.cuh|if (bytes >= 16 && aligned<Chunk16>(p)) {|if (aligned<Chunk16>(p)) {|random|sanitizer
common.cuh|bytes >= 16 && aligned<Chunk16>(p)|bytes >= 16|random|sanitizer
decode.cu|        __syncwarp();||digests digests.txt|library
quantize.cu|__shfl_xor_sync(0xffffffffu, amax, distance)|amax|digests digests.txt|library
validate.cu|if (c >= k) {|if (c > k) {|random|sanitizer
explain.cu|word == sign) return fault_negative_zero|word == sign) return fault_negative|random|library
rows.cu|v.w[i] = swizzled4(a.from, a.rows.at(row + 32 * i)|v.w[i] = swizzled4(a.from, a.rows.at(row + 31 * i)|random|library
launch.cu|a.from += a.rows.begin * a.bytes;||random|library
launch.cu|check_rows(queue, a);||random|sanitizer
FAULTS
    echo "control: $faults faults, all seen"
}

(cd "$kernels/.." && cargo build --quiet --package ninfer-codec-capi --profile archive)
library=$(readlink -f "$library")
if [ "${1:-}" = --control ]; then
    control
    exit
fi
[ $# -gt 0 ] || set -- g++ clang++-19
for compiler in "$@"; do
    command -v "$compiler" > /dev/null || { echo "no compiler $compiler"; exit 1; }
    build "$compiler" "$kernels" "$target/$compiler"
    "$target/$compiler/check" vectors "$vectors" digests "$kernels/test/digests.txt" refusals engine random far \
        exhaustive bench 0.002 | grep -v '^|' | tee "$target/$compiler/log"
    grep -qE '^host library: [1-9][0-9]* calls, [1-9][0-9]* bytes compared$' "$target/$compiler/log" ||
        { echo "FAIL: nothing was compared with the host library"; exit 1; }
done
