#!/usr/bin/env bash
# Runs the second toolchain's cargo for a target, with its own standard library: cargo.sh TARGET COMMAND ARGS...
#
# Programs of the target run under qemu (i686 ones as they are, by their own loader).
set -euo pipefail
target=$1 command=$2
shift 2
export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=0

# `test` also where nothing is tested: all would be built twice otherwise.
std=std,test
case $target in
    s390x-unknown-linux-gnu) gnu=s390x-linux-gnu run="qemu-s390x -L /usr/$gnu" ;;
    powerpc64-unknown-linux-gnu) gnu=powerpc64-linux-gnu run="qemu-ppc64 -L /usr/$gnu" ;;
    aarch64-unknown-linux-gnu) gnu=aarch64-linux-gnu run="qemu-aarch64 -L /usr/$gnu" ;;
    i686-unknown-linux-gnu) gnu=i686-linux-gnu run="/usr/$gnu/lib/ld-linux.so.2 --library-path /usr/$gnu/lib" ;;
    *) gnu='' std=${CROSS_STD:-core} ;;
esac
if [ -n "$gnu" ]; then
    name=$(tr 'a-z-' 'A-Z_' <<<"$target")
    export "CARGO_TARGET_${name}_LINKER=$gnu-gcc" "CARGO_TARGET_${name}_RUNNER=$run"
    # Tests catch panics, also where an option of the profile says otherwise.
    set -- --config 'profile.dev.panic="unwind"' "$@"
fi
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-19
# A target folder of its own: the two toolchains would otherwise rebuild each other's work.
exec /usr/bin/cargo "$command" --target "$target" "-Zbuild-std=$std" \
    --target-dir "${CROSS_TARGET_DIR:-target/cross}" "$@"
