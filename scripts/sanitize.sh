#!/usr/bin/env bash
# Runs the Rust tests under a sanitizer: sanitize.sh address | thread
#
# First a planted fault, which the sanitizer must report: else it is not on.
set -euo pipefail
cd "$(dirname "$0")/.."
sanitizer=$1
target=x86_64-unknown-linux-gnu
export RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=0
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/sanitize-$sanitizer

flags="-Zsanitizer=$sanitizer"
cargo=(cargo)
std=()
tests=(--lib --tests)
names=()
case $sanitizer in
    address)
        report="AddressSanitizer: heap-buffer-overflow"
        # The codec allocates nothing; a test may leak.
        export ASAN_OPTIONS=detect_leaks=0
        ;;
    thread)
        report="ThreadSanitizer: data race"
        # It must see inside std too, so std is built along; clang brings the runtime.
        export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc TSAN_OPTIONS=halt_on_error=1
        cargo=(/usr/bin/cargo)
        std=(-Zbuild-std)
        # The tests that use threads say so in their names; the tool's runs its program, instrumented too.
        tests=(--test properties --test tool)
        names=(threads)
        flags+=" -Zexternal-clangrt -Clinker=clang-19 -Clink-arg=-fsanitize=thread"
        ;;
    *)
        echo "usage: sanitize.sh address | thread"
        exit 2
        ;;
esac
export RUSTFLAGS=$flags

mkdir -p "$CARGO_TARGET_DIR"
controls=scripts/sanitizer-controls
if "${cargo[@]}" run --quiet --manifest-path $controls/Cargo.toml --bin "$sanitizer" --target "$target" \
    "${std[@]}" >"$CARGO_TARGET_DIR.log" 2>&1 || ! grep -q "$report" "$CARGO_TARGET_DIR.log"; then
    cat "$CARGO_TARGET_DIR.log"
    echo "the planted fault went unreported"
    exit 1
fi
echo "the planted fault is reported: $report"
# The tool's program, which its tests start.
"${cargo[@]}" build --target "$target" "${std[@]}" --example ninfer
"${cargo[@]}" test --target "$target" "${std[@]}" --no-fail-fast "${tests[@]}" -- "${names[@]}" --show-output
