#!/usr/bin/env bash
# Configures and builds the CMake target and the check program as run_on_gpu.sh does, with nvcc from PyPI. Needs no GPU:
# where there is none, the program must say so and fail.
#
#   kernels/tools/build.sh [ARCHITECTURE]      90 if none is named
set -euo pipefail
kernels=$(cd "$(dirname "$0")/.." && pwd)
cuda=$("$kernels/tools/wheels.sh")
out=${CARGO_TARGET_DIR:-$kernels/../target}/cuda-build
cmake -S "$kernels" -B "$out" -DCMAKE_BUILD_TYPE=Release -DNINFER_CODEC_CUDA_CHECK=ON \
    "-DCMAKE_CUDA_ARCHITECTURES=${1:-90}" "-DCMAKE_CUDA_COMPILER=$cuda/bin/nvcc" > /dev/null
cmake --build "$out" -j 2 > /dev/null
if said=$("$out/ninfer_codec_cuda_check" engine); then
    echo "$said" | tail -1
elif grep -q '^FAIL device: ' <<< "$said"; then
    echo "built; there is no device to run on: ${said#FAIL device: }"
else
    echo "$said" | tail -5
    exit 1
fi
