#!/usr/bin/env bash
# Installs, on Debian, what the tests need beyond Rust: compilers, checkers, and Python packages in a folder of
# their own (target/python). May be run again at any time; nothing is removed or replaced.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
    gcc g++ libc6-dev binutils                  # C and C++, and the proofs of the archive
    clang-19 libclang-rt-19-dev lld-19          # a second compiler, sanitizers, a second linker
    valgrind strace
    cmake make pkg-config nlohmann-json3-dev    # the installed library and an engine that uses it
    python3 python3-venv python3-pip            # its Python client; the CUDA compilers
    chromium                                    # the tool's report page, headless
)

installed() { dpkg-query --show --showformat='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }

wanted=()
for package in "${packages[@]}"; do
    installed "$package" || wanted+=("$package")
done
if [ ${#wanted[@]} -gt 0 ]; then
    sudo=$([ "$(id -u)" -eq 0 ] || echo sudo)
    export DEBIAN_FRONTEND=noninteractive
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq --no-install-recommends --no-remove "${wanted[@]}" >/dev/null
fi

# Beside the build, so that `cargo clean` takes it along.
environment=target/python
requirements=ffi-tests/python/requirements.txt
if ! cmp -s "$requirements" "$environment/requirements.txt"; then
    python3 -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
    cp "$requirements" "$environment/requirements.txt"
fi
echo "ready: cargo test --workspace"
