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
    python3 -m pip install -q --target "$folder" --no-deps nvidia-cuda-{nvcc,crt,runtime,nvrtc,cuobjdump,nvdisasm}==13.5.37 \
        nvidia-nvvm==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 1>&2
fi
echo "$folder/nvidia/cu13"
