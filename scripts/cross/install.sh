#!/usr/bin/env bash
# Installs, from Debian, what the named targets need: install.sh TARGET...; nothing is removed or replaced.
#
# No multilib compiler and no foreign architecture: both change what the host's own compiler finds.
set -euo pipefail

toolchain=(rustc-web cargo-web rust-web-src libstd-rust-web-dev)

packages_of() {
    case $1 in
        second-toolchain) echo "${toolchain[@]}" ;;
        s390x-unknown-linux-gnu) echo "${toolchain[@]}" qemu-user gcc-s390x-linux-gnu libc6-dev-s390x-cross ;;
        powerpc64-unknown-linux-gnu) echo "${toolchain[@]}" qemu-user gcc-powerpc64-linux-gnu libc6-dev-ppc64-cross ;;
        aarch64-unknown-linux-gnu) echo "${toolchain[@]}" qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
        i686-unknown-linux-gnu) echo "${toolchain[@]}" gcc-i686-linux-gnu libc6-dev-i386-cross ;;
        wasm32-unknown-unknown) echo "${toolchain[@]}" lld-19 "$(command -v node >/dev/null || echo nodejs)" ;;
        thumb*) echo "${toolchain[@]}" gcc-arm-none-eabi llvm-19 ;;
        riscv32*) echo "${toolchain[@]}" gcc-riscv64-unknown-elf llvm-19 ;;
        sanitizers) echo clang-19 libclang-rt-19-dev ;;
        dropin) echo g++ musl-tools ;;
        *) echo "install.sh: unknown target $1" >&2; return 2 ;;
    esac
}

wanted=()
for target in "$@"; do
    for package in $(packages_of "$target"); do
        dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            wanted+=("$package")
    done
done
[ ${#wanted[@]} -eq 0 ] && exit 0

sudo=$([ "$(id -u)" -eq 0 ] || echo sudo)
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get install -y -qq --no-install-recommends --no-remove "${wanted[@]}" >/dev/null
