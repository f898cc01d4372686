#!/usr/bin/env bash
# What a release is held to: release.sh [--update]
#
# 1. Licences, sources and bans of every dependency: deny.toml. (Known vulnerabilities need a database from the
#    network: `cargo deny check advisories`.)
# 2. The public interface is what docs/public-api.txt lists. A line that goes or changes breaks callers.
# 3. The packages of the two libraries hold the files that docs/package-files.txt lists, and build from them alone.
#
# `--update` writes both lists anew, to be read before they are committed. Nothing is published. The first call
# installs two programs under the target folder, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
update=${1-}

# install NAME VERSION: the program, unless it is there in this version
install() {
    [ "$("$tools/bin/$1" --version 2>/dev/null)" = "$1 $2" ] ||
        CARGO_TARGET_DIR=$tools/build cargo install --quiet --locked --root "$tools" "$1@$2"
}
tools=$target/tools
install cargo-deny 0.20.2
install cargo-public-api 0.52.0

# compare LIST WHAT: the list with what is read from stdin
compare() {
    if [ "$update" = --update ]; then
        cat >"$1"
    else
        diff -u "$1" - || {
            echo "$2 are not those of $1: mend them, or run release.sh --update and read the difference"
            exit 1
        }
    fi
    echo "$1: $(wc -l <"$1") lines"
}

"$tools/bin/cargo-deny" --workspace check licenses bans sources

# rustdoc's JSON is for nightly toolchains; the variable lets this one write it. The C interface is its header.
interface() {
    echo "# $1"
    RUSTC_BOOTSTRAP=1 "$tools/bin/cargo-public-api" public-api -sss --package "$@"
}
{
    interface ninfer-codec --features cuda
    interface ninfer-artifact
} | compare docs/public-api.txt "the public items"

# Without what cargo adds by itself.
for package in ninfer-codec ninfer-artifact; do
    cargo package --quiet --list --allow-dirty --package "$package" | sed "s|^|$package/|"
done | grep -vE '/(\.cargo_vcs_info\.json|Cargo\.toml\.orig|Cargo\.lock)$' |
    compare docs/package-files.txt "the packages' files"
cargo package --quiet --allow-dirty --package ninfer-codec --package ninfer-artifact
echo "both packages build from their files"
