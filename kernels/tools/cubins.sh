#!/usr/bin/env bash
# Compiles every kernel for each architecture: none may spill, and those that move codes or values must do so 16
# bytes at a time in the machine code. The committed PTX of the Rust side is held to the same. Needs no GPU.
#
#   kernels/tools/cubins.sh [ARCHITECTURE...]      80 90 100 120 if none is named
set -eu
kernels=$(cd "$(dirname "$0")/.." && pwd)
cuda=$("$kernels/tools/wheels.sh")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
[ $# -gt 0 ] || set -- 80 90 100 120

compile() {  # FOLDER NAME ARCHITECTURE; leaves $out/NAME.cubin and the assembler's log
    "$cuda/bin/nvcc" -std=c++17 -O3 -cubin "-arch=sm_$3" -Xptxas -v "$1/$2.cu" -o "$out/$2.cubin" 2> "$out/$2.log"
}
spills() {  # NAME; prints the lines that tell of a spill or a stack frame
    grep 'stack frame' "$out/$1.log" | grep -v ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' || true
}

# Whether the check can fail: an array that is indexed at run time has to lie in memory.
cat > "$out/control.cu" << 'CONTROL'
extern "C" __global__ void control(int* p) {
    int a[64];
    for (int i = 0; i < 64; ++i) a[i] = p[i];
    for (int i = 0; i < 64; ++i) p[i] = a[p[i] & 63];
}
CONTROL
compile "$out" control "$1"
[ -n "$(spills control)" ] || { echo "FAIL control: no stack frame seen"; exit 1; }

failed=0
for arch in "$@"; do
    count=0 before=$failed
    for name in decode quantize rows validate explain kernels; do
        if [ "$name" = kernels ]; then
            "$cuda/bin/ptxas" "-arch=sm_$arch" -v "$kernels/../src/cuda/kernels.ptx" -o "$out/kernels.cubin" 2> "$out/kernels.log"
        else
            compile "$kernels" "$name" "$arch"
        fi
        found=$(spills "$name")
        [ -z "$found" ] || { echo "FAIL sm_$arch $name: $found"; failed=$((failed + 1)); }
        "$cuda/bin/cuobjdump" -sass "$out/$name.cubin" > "$out/$name.sass"
        # Per kernel: has it 16-byte global loads and stores?
        awk '/Function : / { f = $3 } /LDG\.E[A-Z0-9.]*\.128/ { l[f] = 1 } /STG\.E[A-Z0-9.]*\.128/ { s[f] = 1 }
             f != "" { seen[f] = 1 } END { for (f in seen) print f, l[f] + 0, s[f] + 0 }' "$out/$name.sass" \
            > "$out/$name.wide"
        while read -r kernel loads stores; do
            count=$((count + 1))
            want_load=0 want_store=0
            case $kernel in
                ninfer_codec_decode_* | ninfer_codec_copy_rows_16 | ninfer_codec_swizzle_scales) want_load=1 want_store=1 ;;
                ninfer_codec_unswizzle_scales) want_load=1 want_store=1 ;;
                ninfer_codec_gather_scales) want_store=1 ;;
                ninfer_codec_quantize_*) want_load=1 ;;
                ninfer_codec_validate_nvfp4) ;;
                ninfer_codec_validate_*) want_load=1 ;;
            esac
            if [ "$want_load" -gt "$loads" ] || [ "$want_store" -gt "$stores" ]; then
                echo "FAIL sm_$arch $kernel: 16-byte loads $loads, stores $stores"
                failed=$((failed + 1))
            fi
        done < "$out/$name.wide"
    done
    [ "$count" = 100 ] || { echo "FAIL sm_$arch: $((count / 2)) kernels were found, not 50"; failed=$((failed + 1)); }
    [ "$failed" != "$before" ] || echo "sm_$arch: $((count / 2)) kernels, each from its source and from the PTX: no spills, 16-byte accesses where due"
done
[ "$failed" = 0 ] || { echo "FAILED: $failed"; exit 1; }
