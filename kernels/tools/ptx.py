#!/usr/bin/env python3
"""Makes src/cuda/kernels.ptx, the kernels as the Rust side loads them, with NVRTC 12.9.

    kernels/tools/ptx.py FOLDER          writes the file; FOLDER holds the wheel nvidia-cuda-nvrtc-cu12==12.9.*
                                         and gets it installed on first use
    kernels/tools/ptx.py FOLDER --check  compiles and compares with the committed file

The first line names a digest of the sources (64-bit FNV-1a over the files in SOURCES, in that order), which
tests/cuda.rs compares without a compiler.
"""

import ctypes
import pathlib
import subprocess
import sys

KERNELS = pathlib.Path(__file__).resolve().parent.parent
PTX = KERNELS.parent / "src" / "cuda" / "kernels.ptx"
SOURCES = [
    "ninfer_codec_ptx.cuh", "ninfer_codec.cuh", "common.cuh", "kernels.cuh", "status.cuh",
    "decode.cu", "quantize.cu", "rows.cu", "validate.cu", "explain.cu",
]
OPTIONS = [b"--std=c++17", b"--gpu-architecture=compute_80", b"--include-path=" + str(KERNELS).encode()]


def digest() -> str:
    value = 0xCBF29CE484222325
    for name in SOURCES:
        for byte in (KERNELS / name).read_bytes():
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def library(folder: pathlib.Path) -> ctypes.CDLL:
    lib = folder / "nvidia" / "cuda_nvrtc" / "lib"
    if not (lib / "libnvrtc.so.12").exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), "--no-deps",
             "nvidia-cuda-nvrtc-cu12==12.9.*"],
            check=True,
        )
    ctypes.CDLL(str(next(lib.glob("libnvrtc-builtins.so.*"))), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(lib / "libnvrtc.so.12"))


def compile_ptx(nvrtc: ctypes.CDLL) -> str:
    source = "".join(f'#include "{name}"\n' for name in SOURCES if name.endswith(".cu")).encode()
    program = ctypes.c_void_p()
    created = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    if created != 0:
        sys.exit(f"nvrtcCreateProgram: {created}")
    options = (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)
    status = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    size = ctypes.c_size_t()
    if status != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, text)
    lines = [line.rstrip() for line in text.value.decode().splitlines()]
    # No comments and blank lines: they say nothing and take half the file.
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("//")) + "\n"


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    text = f"// sources {digest()}; made by kernels/tools/ptx.py, do not edit\n"
    text += compile_ptx(library(pathlib.Path(sys.argv[1])))
    if sys.argv[2:] == ["--check"]:
        if PTX.read_text() != text:
            sys.exit("FAIL: src/cuda/kernels.ptx is not what kernels/ gives; run kernels/tools/ptx.py")
        print("src/cuda/kernels.ptx is fresh")
        return
    PTX.parent.mkdir(exist_ok=True)
    PTX.write_text(text)
    print(f"wrote {PTX.name}: {len(text)} bytes")


main()
