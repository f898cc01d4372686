#!/usr/bin/env bash
# Runs run_on_gpu.sh on a machine without a GPU: nvidia-smi, nvcc and cmake are stand-ins, and the program they
# "build" is the one of the CPU shim. Shows that the script's steps, limits and exit status work, nothing more.
#
#   kernels/shim/rehearse.sh CHECK_PROGRAM
#
# A second run with a program that fails must make the script fail.
set -euo pipefail
kernels=$(cd "$(dirname "$0")/.." && pwd)
check=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"

stand_in() {  # NAME; the body is read from standard input
    { echo '#!/usr/bin/env bash'; cat; } > "$work/bin/$1"
    chmod +x "$work/bin/$1"
}
stand_in nvidia-smi << 'BODY'
case $* in *name*) echo "stand-in, 0, 0 MiB, 8.0" ;; *) echo 8.0 ;; esac
BODY
stand_in nvcc <<< 'echo "stand-in for nvcc"'
stand_in cmake << 'BODY'
case $1 in
    -S) mkdir -p "$4" ;;
    --build) cp "$PROGRAM" "$2/ninfer_codec_cuda_check" ;;
esac
BODY
stand_in compute-sanitizer << 'BODY'
while [ "${1#--}" != "$1" ]; do shift 2; done
exec "$@"
BODY

PATH=$work/bin:$PATH PROGRAM=$check TIME_SCALE=10 ASAN_OPTIONS=detect_leaks=0 "$kernels/run_on_gpu.sh" "$work/good" 0.002 > "$work/log" 2>&1 ||
    { tail -40 "$work/log"; echo "FAIL: the script failed"; exit 1; }
grep -q '^ALL PASSED$' "$work/good/report.txt"
printf '#!/bin/sh\necho "0 passed, 1 failed"; exit 1\n' > "$work/bad"
chmod +x "$work/bad"
if PATH=$work/bin:$PATH PROGRAM=$work/bad "$kernels/run_on_gpu.sh" "$work/out" 0.002 > /dev/null 2>&1; then
    echo "FAIL: the script passed a program that fails"
    exit 1
fi
grep -q '^FAILED$' "$work/out/report.txt"
echo "rehearsed: passes with the program of the shim, fails with one that fails"
