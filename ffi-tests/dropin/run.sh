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
REALGCC=g++ musl-gcc "${flags[@]}" -c "$source" -o "$out/engine-musl.o"
musl-gcc -O3 -flto -ffast-math -static "$out/engine-musl.o" "$archive" -o "$out/engine-musl"

# The same vectors with one digit of one expected value changed, which must be seen.
rm -rf "$out/altered"
cp -r "$vectors" "$out/altered"
python3 - "$out/altered/fp8_row.json" <<'PYTHON'
import json, sys
path = sys.argv[1]
data = json.load(open(path))
value = data["valid"][0]["f32"]
data["valid"][0]["f32"] = ("1" if value[0] == "0" else "0") + value[1:]
json.dump(data, open(path, "w"))
PYTHON

for engine in "$out"/engine-{glibc,musl}; do
    if readelf --dynamic "$engine" | grep -q NEEDED; then
        echo "$engine is not static"
        exit 1
    fi
    "$engine" "$vectors"
    if "$engine" "$out/altered" >"$out/altered.log"; then
        echo "$engine did not see a changed digit"
        exit 1
    fi
    grep -q ' 1 failed$' "$out/altered.log"
done
