#!/usr/bin/env bash
# Plants a bug for each target, builds, fuzzes from the committed corpus, and says how long it took to find it.
#
#   fuzz/planted.sh [TARGET...]     exit 1 if a bug is not found in twenty seconds of processor time
set -euo pipefail
cd "$(dirname "$0")/.."
limit=20
names=("$@")
[ $# -gt 0 ] || names=(plan tensor quantize c_abi artifact checkpoint large)
base=$(realpath -m "${CARGO_TARGET_DIR:-fuzz/target}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A copy of what git knows, at one place for all, so that what did not change is built once.
mkdir "$work/tree"
git ls-files -z | tar --create --null --files-from=- | tar --extract --directory "$work/tree"
export CARGO_TARGET_DIR=$base FUZZ_WORK=$work/found
failed=0
printf '%-12s %8s %12s  %s\n' target seconds executions "found by"
for name in "${names[@]}"; do
    patch --quiet --directory "$work/tree" --strip 1 <"fuzz/planted/$name.patch"
    "$work/tree/fuzz/run.sh" build "$name"
    start=$SECONDS
    if "$work/tree/fuzz/run.sh" "$name" $limit >"$work/log" 2>&1; then
        printf '%-12s not found in %s s\n' "$name" $limit
        failed=1
    else
        executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
        line=$(grep -m1 -A1 -E "panicked at|SUMMARY" "$work/log" | tr '\n' ' ' | sed 's/.*panicked at //' | cut -c -100)
        printf '%-12s %8s %12s  %s\n' "$name" $((SECONDS - start)) "${executions:-?}" "$line"
    fi
    patch --quiet --reverse --directory "$work/tree" --strip 1 <"fuzz/planted/$name.patch"
done
exit $failed
