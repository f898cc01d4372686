#!/usr/bin/env bash
# Runs the tests of the Rust side against the stand-in driver: every kernel on the CPU, without a GPU.
#
#   kernels/shim/driver.sh
#
# Then shows that an old driver and one without devices give their typed errors, and that no call of the driver that
# fails makes the library panic.
set -euo pipefail
shim=$(cd "$(dirname "$0")" && pwd)
cd "$shim/../.."
out=$(readlink -f "${CARGO_TARGET_DIR:-target}")/cuda-shim/g++
make -s -j2 -C "$shim" CXX=g++ OUT="$out" LIBRARY=none "$out/driver/libcuda.so.1"
export LD_LIBRARY_PATH=$out/driver RUST_BACKTRACE=0

binary=$(cargo test --features cuda --test cuda --no-run 2>&1 | sed -n 's/.*Executable .*(\(.*\))$/\1/p')
tests() { "$binary" --quiet "$@"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT

tests > "$log" 2>&1 || { cat "$log"; echo "FAIL: the tests failed on the stand-in driver"; exit 1; }
grep '^test result' "$log"
if grep -o 'SKIPPED .*' "$log"; then echo "FAIL: skipped with a driver"; exit 1; fi

expect() {  # TEXT, then the environment
    local text=$1
    shift
    (export "$@"; tests) > "$log" 2>&1 || { cat "$log"; echo "FAIL: $*"; exit 1; }
    grep -q "SKIPPED decode_gives_the_hosts_bytes: $text" "$log" || { cat "$log"; echo "FAIL: not told: $text"; exit 1; }
    echo "$*: $text"
}
expect "the CUDA driver is of version 12.4, the kernels need 12.9" CUDA_STAND_IN_VERSION=12040
expect "there is no such CUDA device" CUDA_STAND_IN_DEVICES=0

# Each call in turn is the first to fail; the last round has none left to fail.
for ((n = 1; ; ++n)); do
    CUDA_STAND_IN_FAIL=$n tests a_driver_that_fails > "$log" 2>&1 || { cat "$log"; echo "FAIL: call $n"; exit 1; }
    if grep -q 'no call failed$' "$log"; then break; fi
    grep -q 'told: the CUDA driver refused a call' "$log" || { cat "$log"; echo "FAIL: call $n: not told"; exit 1; }
done
[ "$n" -gt 50 ] || { echo "FAIL: only $n calls seen"; exit 1; }
echo "a driver that fails from call 1, 2, ... $((n - 1)) on: a typed error each time"
