#!/usr/bin/env bash
# Changes the code of formats, layouts, encoder and decoder in every way that cargo-mutants knows, one at a time, and
# lists the changes that no test notices: mutants.sh
#
# Three passes, each over what the one before has missed: the quick tests, with unoptimised code; those that compare with
# the vectors and the oracle, with the portable backend alone, since vectors hide what is changed below them; then the
# library's own tests. It takes about two hours, works in copies of the repository, and leaves its lists under
# target/mutants.out. Exit 0: none was missed. What is known to change nothing is listed, with the reasons, in
# .cargo/mutants.toml.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants@27.1.0

# Seconds that a test may take, then arguments of cargo. Some missed, or too slow, is no reason to stop.
pass() {
    local arguments=(--no-shuffle --package ninfer-codec --output target --timeout "$1")
    for argument in "${@:2}"; do
        arguments+=(-C "$argument")
    done
    cargo mutants "${arguments[@]}" "${iterate[@]}" || [[ $? == [23] ]]
}

rm -rf target/mutants.out
export CARGO_PROFILE_DEV_DEBUG=0 RUST_BACKTRACE=0
iterate=()
PROPTEST_CASES=16 pass 30 --config=profile.dev.opt-level=0 '--config=profile.dev.package."*".opt-level=1' \
    --test=examples_of_the_contract --test=properties --test=refusals
iterate=(--iterate)
RUSTFLAGS="--cfg ninfer_codec_force_portable" pass 90 --test=conversions --test=exhaustive --test=properties \
    --test=validate --test=vectors
pass 200 --lib --test=properties --test=refusals
! [ -s target/mutants.out/missed.txt ]
