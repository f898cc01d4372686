#!/usr/bin/env bash
# Builds the C archive for a target without an operating system and prints its path: archive.sh TARGET [ARGS...]
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$1
shift
archive=${CROSS_TARGET_DIR:-target/cross}/$target/archive/libninfer_codec.a
scripts/cross/cargo.sh "$target" rustc --quiet --package ninfer-codec-capi --profile archive --crate-type staticlib "$@" >&2
# A second copy of the code for compilers of another kind; it only makes the binary tools complain.
llvm-objcopy-19 --remove-section .llvmbc --remove-section .llvmcmd "$archive" >&2
echo "$archive"
