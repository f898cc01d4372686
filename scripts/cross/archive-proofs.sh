#!/usr/bin/env bash
# Proves of the archive of a bare-metal target what is promised of the host's: archive-proofs.sh TARGET
#
# * All functions of the header are there, and what they reach needs at most five functions of its host.
# * No panic can be reached: with the feature `panic-proof` a panic would leave an undefined symbol.
# * Nothing is exported but the header's functions and the compiler's helpers.
# Each check must also find a planted fault.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$1
case $target in
    thumb*) tools=arm-none-eabi- emulation=() ;;
    riscv32*) tools=riscv64-unknown-elf- emulation=(-m elf32lriscv) ;;
    *) echo "archive-proofs.sh: no tools for $target"; exit 2 ;;
esac
out=target/archive-proofs/$target
mkdir -p "$out"
panic=ninfer_codec_panic_path_survived
needs='memcpy|memmove|memset|memcmp|bcmp'

# The functions that the header declares.
functions() { grep -oE '\bninfer_codec_[a-z0-9_]+\(' include/ninfer_codec.h | tr -d '(' | sort -u; }
# What is undefined once everything that the given functions do not reach is gone.
undefined() {
    local archive=$1 wanted=()
    shift
    for function in "$@"; do wanted+=(-u "$function"); done
    "${tools}ld" "${emulation[@]}" -r --gc-sections "${wanted[@]}" -o "$out/part.o" "$archive"
    "${tools}nm" --undefined-only --format=just-symbols "$out/part.o" | sort -u
}
# What a program that links the archive could collide with: strong symbols, but for the compiler's own helpers,
# which carry its name or two underscores.
exported() {
    "${tools}nm" --extern-only --defined-only "$1" 2>/dev/null |
        awk '$2 ~ /^[TDBR]$/ && $3 !~ /^__|^_R.*17compiler_builtins/ { print $3 }' | sort -u
}

passed=0
failed=0
check() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1: expected '$2', got '$3'"
    fi
}

mapfile -t all < <(functions)
archive=$(scripts/cross/archive.sh "$target")
check "functions of the header that are missing" "" \
    "$(comm -23 <(functions) <(exported "$archive") | xargs)"
check "needs beyond the five functions" "" "$(undefined "$archive" "${all[@]}" | grep -vxE "$needs" | xargs)"
check "exports beyond the header's" "" "$(comm -13 <(functions) <(exported "$archive") | xargs)"

archive=$(scripts/cross/archive.sh "$target" --features plant-symbol)
check "the planted need" "ninfer_codec_planted_need" \
    "$(undefined "$archive" planted_symbol | grep -vxE "$needs" | xargs)"
check "the planted export" "planted_symbol" "$(comm -13 <(functions) <(exported "$archive") | xargs)"

archive=$(scripts/cross/archive.sh "$target" --features panic-proof)
check "panics that can be reached" "" "$(undefined "$archive" "${all[@]}" | grep -x "$panic" || true)"

archive=$(scripts/cross/archive.sh "$target" --features panic-proof,plant-panic)
check "the planted panic" "$panic" "$(undefined "$archive" ninfer_codec_planted | grep -x "$panic" || true)"

# The archive that others link is the plain one.
scripts/cross/archive.sh "$target" >/dev/null
echo "$target, ${#all[@]} functions"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
