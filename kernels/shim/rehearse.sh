#!/usr/bin/env bash
# Runs run_on_gpu.sh on a machine without a GPU: nvidia-smi, nvcc and cmake are stand-ins, and the program they
# "build" is the one of the CPU shim. Shows that the script's steps, limits and exit status work, nothing more.
#
#   kernels/shim/rehearse.sh CHECK_PROGRAM
#
# It must fail with a program that fails, with one that hangs, without nvcc, and with a sanitizer that finds something;
# and say what it skipped where there is no sanitizer.
set -euo pipefail
kernels=$(cd "$(dirname "$0")/.." && pwd)
check=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/programs"

stand_in() {  # NAME; the body is read from standard input
    { echo '#!/usr/bin/env bash'; cat; } > "$work/bin/$1"
    chmod +x "$work/bin/$1"
}
stand_in nvidia-smi << 'BODY'
case $* in *name*) echo "stand-in, 0, 0 MiB, 8.0" ;; *) echo 8.0 ;; esac
BODY
stand_in nvcc <<< 'echo "stand-in for nvcc"'
stand_in ptxas <<< 'exit 0'
stand_in cmake << 'BODY'
case $1 in
    -S) mkdir -p "$4" ;;
    --build) cp "$PROGRAM" "$2/ninfer_codec_cuda_check" ;;
esac
BODY
sanitizer() {  # EXIT_STATUS of the stand-in
    stand_in compute-sanitizer << BODY
while [ "\${1#--}" != "\$1" ]; do shift 2; done
"\$@" && exit $1
BODY
}
program() {  # NAME COMMAND
    printf '#!/bin/sh\n%s\n' "$2" > "$work/programs/$1"
    chmod +x "$work/programs/$1"
}
export ASAN_OPTIONS=detect_leaks=0
run() {  # NAME PROGRAM TIME_SCALE; the report is in $work/NAME/report.txt
    PATH=$work/bin:/usr/bin:/bin PROGRAM=$2 TIME_SCALE=$3 "$kernels/run_on_gpu.sh" "$work/$1" 0.002 > "$work/log" 2>&1
}
passes() {
    run "$@" || { grep -E 'FAIL|ran past|^took' "$work/log"; echo "FAIL: $1: the script failed"; exit 1; }
    grep -q '^ALL PASSED$' "$work/$1/report.txt"
}
fails() {  # NAME PROGRAM TIME_SCALE LINE
    if run "$1" "$2" "$3"; then echo "FAIL: $1: the script passed"; exit 1; fi
    grep -q "$4" "$work/$1/report.txt" || { tail -40 "$work/log"; echo "FAIL: $1: no line $4"; exit 1; }
}

sanitizer 0
passes good "$check" 60  # however busy the machine
[ "$(grep -c '^== compute-sanitizer [a-z]*: [0-9]* s$' "$work/good/report.txt")" = 3 ]
program bad 'echo "0 passed, 1 failed"; exit 1'
fails bad-program "$work/programs/bad" 1 '^== random, past 32 bits: FAILED with status 1$'
program quick 'echo "1 passed, 0 failed"'
sanitizer 9
fails sanitizer-finds "$work/programs/quick" 1 '^== compute-sanitizer racecheck: FAILED with status 9$'
rm "$work/bin/compute-sanitizer"
passes no-sanitizer "$work/programs/quick" 1
[ "$(grep -c '^SKIPPED compute-sanitizer: not installed$' "$work/no-sanitizer/report.txt")" = 2 ]
program hangs 'sleep 600'
TIME_LIMIT=1 fails hangs "$work/programs/hangs" 1 '^== bench: ran past 1 s$'
rm "$work/bin/nvcc"
fails no-nvcc "$work/programs/quick" 1 '^cannot run: no nvcc on this machine$'
echo "rehearsed: passes with the program of the shim and without a sanitizer; fails with a program that fails or hangs,"
echo "with a sanitizer that finds something, and without nvcc"
