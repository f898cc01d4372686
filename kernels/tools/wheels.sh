#!/usr/bin/env bash
# Prints the root of a CUDA toolkit that compiles, made from PyPI wheels on first use; CUDA_ROOT overrides.
set -eu
if [ -n "${CUDA_ROOT:-}" ]; then
    echo "$CUDA_ROOT"
    exit
fi
kernels=$(cd "$(dirname "$0")/.." && pwd)
folder=${CARGO_TARGET_DIR:-$kernels/../target}/cuda-wheels
if [ ! -x "$folder/nvidia/cu13/bin/nvcc" ]; then
    python3 -m pip install -q --target "$folder" --no-deps nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt \
        nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-nvrtc nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm 1>&2
fi
echo "$folder/nvidia/cu13"
