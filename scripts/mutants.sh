#!/usr/bin/env bash
# Changes the code of formats, layouts, encoder and decoder in every way that cargo-mutants knows, one at a time, and
# lists the changes that no test notices: mutants.sh
#
# First the quick tests, with unoptimised code, for all mutants; then these and the slower ones for those that are left.
# It takes hours, works in a copy of the repository, and leaves its lists under target/mutants.out. Exit 0: none was
# missed. What is known to change nothing is listed, with the reasons, in .cargo/mutants.toml.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants@27.1.0

mutate() {
    local arguments=(--no-shuffle --package ninfer-codec --output target)
    for argument in "$@"; do
        arguments+=(-C "$argument")
    done
    CARGO_PROFILE_DEV_DEBUG=0 RUST_BACKTRACE=0 cargo mutants "${arguments[@]}" "${more[@]}"
}

rm -rf target/mutants.out
more=(--timeout 60)
PROPTEST_CASES=16 mutate --config=profile.dev.opt-level=0 '--config=profile.dev.package."*".opt-level=1' \
    --test=refusals --test=examples_of_the_contract --test=properties || [[ $? == [23] ]] # some missed, some too slow
more=(--timeout 300 --iterate)
mutate --lib --test=vectors --test=refusals --test=validate --test=examples_of_the_contract --test=properties \
    --test=conversions --test=exhaustive
