#!/usr/bin/env python3
"""Runs the suites on every target and shows the matrix: matrix.py [--readme | --ci] [TARGET...].

A target is named in full or by its beginning; none named means all. What a target needs is installed first
(Debian packages, as root). A suite that cannot run, or a part of one that says so in a line `SKIPPED: reason`,
is shown with its reason; a skip fails the run unless the reason is missing hardware. Exit code 0: nothing failed.

Results are kept under target/, so that targets may be run one at a time; `--readme` writes the table of all of
them between the README's two marks. `--ci` runs, of one big-endian and one bare-metal target, what takes minutes.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import skips

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "target/matrix"
README = ROOT / "README.md"
MARKS = ("<!-- matrix: made by scripts/matrix.py -->", "<!-- end of matrix -->")

VECTORS = "tests/vectors"
# The output of tests that pass is shown too: skips are said there.
TESTS = ["test", "--no-fail-fast"]
SHOW = ["--", "--show-output"]
CONFORMANCE = ["run", "--example", "conformance", "--", VECTORS]


@dataclass(frozen=True)
class Target:
    name: str
    what: str
    # The names by which scripts/cross/install.sh installs what it needs.
    needs: list
    # Each suite's name and command.
    suites: dict


def host(name, what, needs, cargo, more=()):
    run, *rest = CONFORMANCE
    suites = {"tests": [*cargo, *TESTS, *more, *SHOW], "vectors": [*cargo, run, *more, *rest]}
    return Target(name, what, needs, suites)


def cross(name, what):
    """The codec's tests: those of the tool, in a folder, start its program, which only a host can."""
    cargo = ["scripts/cross/cargo.sh", name]
    codec = [f"--test={file.stem}" for file in sorted((ROOT / "tests").glob("*.rs"))]
    suites = {
        "codec tests": [*cargo, *TESTS, "--lib", *codec, *SHOW],
        "examples in the docs": [*cargo, *TESTS, "--doc", *SHOW],
        "vectors": [*cargo, *CONFORMANCE],
    }
    return Target(name, what, [name], suites)


def firmware(name, board, what):
    suites = {
        "firmware": ["examples/firmware/build.sh", board],
        "archive proofs": ["scripts/cross/archive-proofs.sh", name],
    }
    return Target(name, what, [name], suites)


SECOND = ["env", "RUSTC=/usr/bin/rustc", "RUSTDOC=/usr/bin/rustdoc", "/usr/bin/cargo"]
TARGETS = [
    host("x86_64-unknown-linux-gnu", "the machine's own toolchain", [], ["cargo"]),
    host("second-toolchain", "x86-64, Debian's rustc", ["second-toolchain"], SECOND, ["--target-dir", "target/second"]),
    cross("aarch64-unknown-linux-gnu", "qemu"),
    cross("i686-unknown-linux-gnu", "32-bit"),
    cross("s390x-unknown-linux-gnu", "big-endian, qemu"),
    cross("powerpc64-unknown-linux-gnu", "big-endian, qemu"),
    Target(
        "wasm32-unknown-unknown",
        "a module without imports, node",
        ["wasm32-unknown-unknown"],
        {"vectors": ["scripts/cross/wasm.sh", VECTORS]},
    ),
    firmware("thumbv7em-none-eabi", "mps2-an386", "Cortex-M4 without float hardware, qemu"),
    firmware("thumbv6m-none-eabi", "microbit", "Cortex-M0, qemu"),
    firmware("riscv32imac-unknown-none-elf", "sifive_e", "FE310, qemu"),
    Target(
        "sanitizers",
        "x86-64",
        ["sanitizers", "second-toolchain"],
        {name: ["scripts/sanitize.sh", name] for name in ("address", "thread")},
    ),
    Target(
        "dropin",
        "C++ engine, static, gcc LTO",
        ["dropin"],
        {"vectors": ["ffi-tests/dropin/run.sh", VECTORS]},
    ),
]

# The other tests take long under qemu: exhaustive loops, and many runs of the vectors.
QUICK = [f"--test={name}" for name in ("refusals", "validate", "examples_of_the_contract")]
BIG_ENDIAN, BARE_METAL = "s390x-unknown-linux-gnu", "thumbv7em-none-eabi"
# Without debug information: most of the time goes into building.
BIG_ENDIAN_CARGO = ["env", "CARGO_PROFILE_DEV_DEBUG=0", "scripts/cross/cargo.sh", BIG_ENDIAN]
CI = [
    Target(
        BIG_ENDIAN,
        "big-endian, qemu, quick tests",
        [BIG_ENDIAN],
        {
            "codec tests": [*BIG_ENDIAN_CARGO, *TESTS, "--lib", *QUICK, *SHOW],
            "vectors": [*BIG_ENDIAN_CARGO, *CONFORMANCE],
        },
    ),
    next(target for target in TARGETS if target.name == BARE_METAL),
]


def count(log, code):
    """Passed, failed and the reasons of skips, from what a suite printed."""
    passed = failed = 0
    for line in log.splitlines():
        if match := re.match(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", line):
            passed += int(match[1])
            failed += int(match[2])
        elif match := re.fullmatch(r"(?:\w+: )?(\d+) passed, (\d+) failed(?:, \d+ skipped)?", line):
            passed += int(match[1])
            failed += int(match[2])
    reasons = skips.found(log)
    notes = []
    if code != 0 and failed == 0:
        failed, notes = 1, [f"exit code {code}"]
    elif passed == 0 and not reasons:
        failed, notes = 1, ["ran nothing"]
    return passed, failed, reasons, notes


def run(target, suite, command):
    log_file = RESULTS / f"{target.name}.{suite.replace(' ', '-')}.log"
    started = time.monotonic()
    with log_file.open("w") as log:
        code = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode
    passed, failed, reasons, notes = count(log_file.read_text(errors="replace"), code)
    if failed:
        print("\n".join(log_file.read_text(errors="replace").splitlines()[-40:]), file=sys.stderr)
    return {
        "target": target.name,
        "what": target.what,
        "suite": suite,
        "passed": passed,
        "failed": failed,
        "skips": sorted(set(reasons)),
        "skipped": len(reasons),
        "notes": notes,
        "seconds": round(time.monotonic() - started),
        "date": datetime.date.today().isoformat(),
    }


def run_target(target, keep):
    install = subprocess.run(["scripts/cross/install.sh", *target.needs], cwd=ROOT, capture_output=True, text=True)
    if install.returncode != 0:
        print(install.stderr, file=sys.stderr)
        sys.exit(f"{target.name}: cannot install what it needs")
    rows = []
    for suite, command in target.suites.items():
        row = run(target, suite, command)
        rows.append(row)
        print(table_line(row), flush=True)
    if keep:
        (RESULTS / f"{target.name}.json").write_text(json.dumps(rows, indent=1))
    return rows


HEADER = ["| target | | suite | passed | failed | skipped | date |", "|---|---|---|---:|---:|---|---|"]


def table_line(row):
    skipped = f"{row['skipped']}: {'; '.join(row['skips'])}" if row["skipped"] else "0"
    failed = " ".join([str(row["failed"]), *row["notes"]])
    cells = [f"`{row['target']}`", row["what"], row["suite"], row["passed"], failed, skipped, row["date"]]
    return f"| {' | '.join(map(str, cells))} |"


def write_readme():
    lines = list(HEADER)
    for target in TARGETS:
        file = RESULTS / f"{target.name}.json"
        if file.exists():
            lines += map(table_line, json.loads(file.read_text()))
        else:
            lines.append(f"| `{target.name}` | {target.what} | {', '.join(target.suites)} | not run | | | |")
    text = README.read_text()
    begin, end = (text.index(mark) for mark in MARKS)
    table = "\n".join([MARKS[0], "", *lines, "", ""])
    README.write_text(text[:begin] + table + text[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readme", action="store_true", help="write the table of all kept results into the README")
    parser.add_argument("--ci", action="store_true", help="run what CI runs")
    parser.add_argument("--list", action="store_true", help="name the targets and run nothing")
    parser.add_argument("target", nargs="*")
    options = parser.parse_args()
    if options.list:
        print("\n".join(target.name for target in TARGETS))
        return 0
    for name in options.target:
        if not any(target.name.startswith(name) for target in TARGETS):
            parser.error(f"no target begins with {name}")
    targets = CI if options.ci else TARGETS
    chosen = [t for t in targets if not options.target or any(t.name.startswith(name) for name in options.target)]
    RESULTS.mkdir(parents=True, exist_ok=True)
    print("\n".join(HEADER), flush=True)
    rows = [row for target in chosen for row in run_target(target, keep=not options.ci)]
    if options.readme:
        write_readme()
    passed, failed = (sum(row[key] for row in rows) for key in ("passed", "failed"))
    refused = skips.refused(reason for row in rows for reason in row["skips"])
    for reason in refused:
        print(f"skipped for no good reason: {reason}")
    print(f"{passed} passed, {failed} failed, {sum(row['skipped'] for row in rows)} skipped")
    return 1 if failed or refused else 0


sys.exit(main())
