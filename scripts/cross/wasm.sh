#!/usr/bin/env bash
# Runs the vectors in node on wasm32: by the conformance runner as a module, and through the C ABI's own module.
#
# Neither module may import anything.
set -euo pipefail
cd "$(dirname "$0")/../.."
vectors=${1:-tests/vectors}
target=wasm32-unknown-unknown
cargo=scripts/cross/cargo.sh
out=${CROSS_TARGET_DIR:-target/cross}

CROSS_STD=std,panic_abort CROSS_TARGET_DIR=$out-wasm $cargo $target build --release \
    --manifest-path scripts/cross/conformance-wasm/Cargo.toml
$cargo $target build --profile archive --package ninfer-codec-capi
node scripts/cross/wasm-conformance.mjs "$out-wasm/$target/release/conformance_wasm.wasm" "$vectors"
node scripts/cross/wasm-c-abi.mjs "$out/$target/archive/ninfer_codec.wasm" include/ninfer_codec.h "$vectors"
