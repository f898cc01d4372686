#!/usr/bin/env bash
# Builds the C archive and shared library and lays them down with their headers, a pkg-config file and a CMake
# package config: scripts/install.sh PREFIX
set -euo pipefail
prefix=${1:?usage: scripts/install.sh PREFIX}
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --package ninfer-codec-capi --profile archive
version=$(cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "ninfer-codec"))')
abi=$(sed -n 's/^#define NINFER_CODEC_ABI_VERSION //p' include/ninfer_codec.h)

mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/ninfer_codec"
prefix=$(cd "$prefix" && pwd)
install -m 644 include/ninfer_codec.h include/ninfer_codec.hpp "$prefix/include/"
install -m 644 "$target/archive/libninfer_codec.a" "$prefix/lib/"
# What else the archive holds is the Rust compiler's runtime. The library needs nothing of it, and a program whose own
# compiler needs such functions must not find them here.
ar t "$prefix/lib/libninfer_codec.a" | grep -v '^ninfer_codec\.' | xargs -r ar d "$prefix/lib/libninfer_codec.a"
install -m 755 "$target/archive/libninfer_codec.so" "$prefix/lib/libninfer_codec.so.$version"
ln -sf "libninfer_codec.so.$version" "$prefix/lib/libninfer_codec.so.$abi"
ln -sf "libninfer_codec.so.$abi" "$prefix/lib/libninfer_codec.so"
for template in capi/install/*.in; do
    name=$(basename "$template" .in)
    case $name in
        *.pc) to="$prefix/lib/pkgconfig/$name" ;;
        *) to="$prefix/lib/cmake/ninfer_codec/$name" ;;
    esac
    sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" -e "s|@ABI@|$abi|g" "$template" >"$to"
done
echo "installed ninfer_codec $version into $prefix"
