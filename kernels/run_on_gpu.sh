#!/usr/bin/env bash
# Builds the kernels and the check program with this machine's nvcc and runs everything on its GPU.
#
#   kernels/run_on_gpu.sh [OUTPUT_FOLDER] [GIGABYTES]
#
# Needs nvcc (CUDA 12.4 or later), CMake 3.18 and a GPU of compute capability 8.0 or later; no network, no cargo.
# Leaves report.txt (and the build) in the output folder. Exit status 0 only if every check passed, all within 4
# minutes, and compute-sanitizer, where it is installed, found nothing. Each step has its own time limit as well
# (TIME_SCALE multiplies all of them, TIME_LIMIT replaces a step's). What is not done is told as SKIPPED, in place and again at the end.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(mktemp -d)}
gigabytes=${2:-6}
mkdir -p "$out"
out=$(cd "$out" && pwd)
report=$out/report.txt
: > "$report"
failed=0

say() { echo "$*" | tee -a "$report"; }
step() {  # NAME SECONDS COMMAND...
    local name=$1 limit=${TIME_LIMIT:-$(($2 * ${TIME_SCALE:-1}))} begin=$SECONDS status
    shift 2
    say "== $name"
    timeout "$limit" "$@" 2>&1 | tee -a "$report"
    status=${PIPESTATUS[0]}
    [ "$status" = 124 ] && say "== $name: ran past $limit s"
    [ "$status" = 0 ] || { failed=1; say "== $name: FAILED with status $status"; }
    say "== $name: $((SECONDS - begin)) s"
    return "$status"
}

if ! command -v nvcc > /dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then PATH=/usr/local/cuda/bin:$PATH; fi
for tool in nvcc cmake nvidia-smi; do
    if ! command -v "$tool" > /dev/null; then
        say "cannot run: no $tool on this machine"
        exit 2
    fi
done
step "machine" 20 nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader || exit 2
nvcc --version | tail -2 | tee -a "$report"
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d '. ')

step "configure" 60 cmake -S "$here" -B "$out/build" -DCMAKE_BUILD_TYPE=Release -DNINFER_CODEC_CUDA_CHECK=ON \
    "-DCMAKE_CUDA_ARCHITECTURES=$arch" "-DCMAKE_CUDA_COMPILER=$(command -v nvcc)" || exit 1
step "build" 150 cmake --build "$out/build" -j 8 || exit 1
# The kernels as Rust programs load them: the committed PTX must assemble for this device.
if command -v ptxas > /dev/null; then
    step "committed PTX" 60 ptxas "-arch=sm_$arch" "$here/../src/cuda/kernels.ptx" -o "$out/kernels.cubin"
else
    say "SKIPPED committed PTX: no ptxas beside nvcc"
fi
check=$out/build/ninfer_codec_cuda_check
vectors=$here/../tests/vectors
digests=$here/test/digests.txt

step "words, vectors, digests" 60 "$check" vectors "$vectors" digests "$digests" refusals engine
step "random, past 32 bits" 60 "$check" random far
step "exhaustive" 60 "$check" exhaustive
if command -v compute-sanitizer > /dev/null; then
    # memcheck: accesses outside buffers; racecheck: shared memory; synccheck: barriers; initcheck is not of use here,
    # outputs are compared with their poison.
    step "compute-sanitizer memcheck" 60 compute-sanitizer --tool memcheck --error-exitcode 9 "$check" engine digests "$digests"
    step "compute-sanitizer racecheck" 45 compute-sanitizer --tool racecheck --error-exitcode 9 "$check" engine
    step "compute-sanitizer synccheck" 45 compute-sanitizer --tool synccheck --error-exitcode 9 "$check" engine
else
    say "SKIPPED compute-sanitizer: not installed"
fi
step "bench" 60 "$check" bench "$gigabytes"

limit=$((240 * ${TIME_SCALE:-1}))
say "total: $SECONDS s"
[ "$SECONDS" -le "$limit" ] || { failed=1; say "took more than $limit s"; }
skipped=$(grep '^SKIPPED' "$report")
[ -z "$skipped" ] || say "not done, as said above:
$skipped"
if [ "$failed" = 0 ]; then say "ALL PASSED"; else say "FAILED"; fi
exit "$failed"
