#!/usr/bin/env bash
# Compiles every kernel, and an engine's kernel on the inlined functions, under each flag that could change results.
# The PTX must be the same byte for byte, and its floating-point instructions only those that carry their own rounding
# and never flush. Needs no GPU.
set -eu
kernels=$(cd "$(dirname "$0")/.." && pwd)
cuda=$("$kernels/tools/wheels.sh")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags=("" --use_fast_math -ftz=true "-prec-div=false -prec-sqrt=false" -fmad=false -fmad=true
       "-ftz=true -prec-div=false -fmad=true")

ptx() {  # SOURCE OUTPUT FLAGS
    # shellcheck disable=SC2086
    "$cuda/bin/nvcc" -std=c++17 -ptx -arch=compute_80 $3 "$1" -o "$2"
}

# Whether the comparison can fail.
cat > "$out/control.cu" << 'CONTROL'
extern "C" __global__ void control(float* p) { p[0] = p[1] * p[2] + p[3] / p[4]; }
CONTROL
ptx "$out/control.cu" "$out/plain" ""
ptx "$out/control.cu" "$out/fast" --use_fast_math
if cmp -s "$out/plain" "$out/fast"; then
    echo "FAIL control: --use_fast_math changed nothing"
    exit 1
fi

# Exact or rounded as written, subnormals kept. mov moves bits; integers below 2^24 to float are exact.
allowed='mov.f32 mov.f64 mul.rn.f32 div.rn.f32 div.rn.f64 cvt.f32.f16 cvt.f64.f32 cvt.rn.f16.f32 cvt.rn.f16x2.f32
cvt.rn.bf16x2.f32 cvt.rni.s32.f32 cvt.rn.f32.s32 ld.global.f32 st.global.f32 st.global.v2.f32 st.global.v4.f32 selp.f32
ld.global.v4.f32 ld.local.f32 st.local.f32 mov.b32'
failed=0
for name in decode quantize rows validate explain test/engine; do
    for i in "${!flags[@]}"; do
        ptx "$kernels/$name.cu" "$out/$i.ptx" "${flags[$i]}"
        if ! cmp -s "$out/0.ptx" "$out/$i.ptx"; then
            echo "FAIL $name: ${flags[$i]} changes the PTX"
            failed=1
        fi
    done
    for instruction in $(grep -oE '\b[a-z]+[a-z0-9.]*\.(f16|f32|f64|bf16|f16x2|bf16x2)[a-z0-9.]*' "$out/0.ptx" | sort -u); do
        if ! grep -qwF -- "$instruction" <<< "$(tr ' ' '\n' <<< "$allowed")"; then
            echo "FAIL $name: $instruction"
            failed=1
        fi
    done
    echo "$name: ${#flags[@]} sets of flags, one PTX"
done
# One header, of at most 100 lines, has all inline PTX and alone looks at the architecture.
header=$kernels/ninfer_codec_ptx.cuh
for word in __CUDA_ARCH__ asm; do
    found=$(cd "$kernels" && grep -rlwF "$word" . ../include --include='*.cu*' --include='*.h*')
    [ "$found" = ./ninfer_codec_ptx.cuh ] || { echo "FAIL: $word in:" $found; failed=1; }
done
lines=$(wc -l < "$header")
[ "$lines" -le 100 ] || { echo "FAIL: ninfer_codec_ptx.cuh has $lines lines"; failed=1; }
echo "ninfer_codec_ptx.cuh: $lines lines, and nowhere else __CUDA_ARCH__ or asm"
[ "$failed" = 0 ] || echo "FAILED"
exit "$failed"
