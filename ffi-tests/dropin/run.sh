#!/usr/bin/env bash
# Builds the engine as engines are built, statically against glibc and against musl, and runs the vectors in both.
#
# run.sh [VECTORS]. musl has no C++ library, and the program needs none.
set -euo pipefail
cd "$(dirname "$0")/../.."
vectors=${1:-tests/vectors}
out=target/dropin
mkdir -p "$out"
cargo build --quiet --profile archive -p ninfer-codec-capi
archive=${CARGO_TARGET_DIR:-target}/archive/libninfer_codec.a

flags=(-std=c++17 -O3 -flto -ffast-math -fno-exceptions -fno-rtti -Wall -Wextra -Werror -pedantic -Iinclude)
source=ffi-tests/dropin/engine.cpp
g++ "${flags[@]}" -static "$source" "$archive" -o "$out/engine-glibc"
REALGCC=g++ musl-gcc "${flags[@]}" -static -nostdlib++ "$source" "$archive" -o "$out/engine-musl"

for engine in "$out"/engine-{glibc,musl}; do
    if readelf --dynamic "$engine" | grep -q NEEDED; then
        echo "$engine is not static"
        exit 1
    fi
    "$engine" "$vectors"
done
