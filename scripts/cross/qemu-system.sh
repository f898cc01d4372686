#!/usr/bin/env bash
# Runs qemu-system-CPU ARGS...; on the first call, unpacks Debian's packages of it under target/.
#
# Unpacked and not installed, because installing them removes a newer qemu-utils where there is one.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$PWD/target/tools/qemu-system
if [ ! -e "$tools/complete" ]; then
    rm -rf "$tools"
    mkdir -p "$tools/packages"
    wanted=(qemu-system-arm qemu-system-misc)
    apt-get update -qq >&2
    mapfile -t missing < <(apt-get install --simulate --no-install-recommends "${wanted[@]}" |
        sed -n 's/^Inst \([^ ]*\).*/\1/p')
    # Where they are installed the simulation names none, and the wrapper below finds them.
    if [ ${#missing[@]} -gt 0 ]; then
        (cd "$tools/packages" && apt-get download -qq "${missing[@]}" >&2)
        for package in "$tools"/packages/*.deb; do dpkg -x "$package" "$tools"; done
        rm -rf "$tools/packages"
    fi
    touch "$tools/complete"
fi
cpu=$1
shift
export LD_LIBRARY_PATH="$tools/usr/lib/x86_64-linux-gnu:$tools/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PATH="$tools/usr/bin:$PATH"
exec "qemu-system-$cpu" -L "$tools/usr/share/qemu" "$@"
