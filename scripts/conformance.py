#!/usr/bin/env python3
"""Checks docs/conformance.md: each clause names a test, and each named test is a #[test] of its file.

conformance.py [LOG]: LOG is what `cargo test --workspace` printed, stdout and stderr together; then each named test
must stand there as `ok` too.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = {"tests": "", "artifact/tests": "artifact/", "src": "src/"}


def clauses():
    """(clause, what it asks, names of tests) of each row of the table."""
    table = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Z][\d.]*-\d+) \| (.*) \| (.*) \|$", table, re.MULTILINE)
    return [(clause, text, re.findall(r"`([^`]+)`", cell)) for clause, text, cell in rows]


def tests_of(path):
    """Names of the functions that are tests, inside proptest! or not."""
    text = path.read_text(encoding="utf-8")
    return set(re.findall(r"#\[test\]\s*(?:#\[[^\]]*\]\s*|//[^\n]*\s*)*fn (\w+)", text))


def tests_there_are():
    """The tests of every file, by the file's name in the table."""
    files = {}
    for folder, prefix in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.rs")):
            files[prefix + str(path.relative_to(ROOT / folder).with_suffix(""))] = tests_of(path)
    return files


def split(name):
    """A test of the table as (package, target, path of the test inside it)."""
    file, _, function = name.rpartition("::")
    if file.startswith("src/"):
        return "ninfer-codec", "lib", "::".join([*file.split("/")[1:], function])
    package = "ninfer-artifact" if file.startswith("artifact/") else "ninfer-codec"
    return package, file.rpartition("/")[2], function


def tests_that_passed(log):
    """The tests that a log shows as `ok`, as (target, path); fails if two targets have one name."""
    passed, target, seen = set(), None, set()
    for line in log.splitlines():
        if match := re.match(r"\s+Running (unittests )?(\S+\.rs) \((.*)\)$", line):
            # .../deps/NAME-HASH, where NAME is the test file's, or the crate's for its unit tests
            name = pathlib.Path(match[3]).name.rpartition("-")[0]
            target = {"ninfer_codec": "lib"}.get(name, name) if match[1] else name
            if target in seen:
                sys.exit(f"two targets are named {target}, or the log holds two runs")
            seen.add(target)
        elif match := re.match(r"test (\S+) \.\.\. ok\b", line):
            passed.add((target, match[1]))
    return passed


def main():
    faults = []
    rows = clauses()
    there = tests_there_are()
    passed = None
    if len(sys.argv) > 1:
        passed = tests_that_passed(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace"))
    for clause, _, names in rows:
        if not names:
            faults.append(f"{clause}: no test is named")
        for name in names:
            file, _, function = name.rpartition("::")
            if function not in there.get(file, ()):
                faults.append(f"{clause}: no test {name}")
            elif passed is not None and split(name)[1:] not in passed:
                faults.append(f"{clause}: {name} did not run and pass")
    if len({clause for clause, _, _ in rows}) != len(rows):
        faults.append("a clause stands twice")
    for fault in faults:
        print(fault)
    good = len(rows) - len({fault.split(":")[0] for fault in faults})
    tests = len({name for _, _, names in rows for name in names})
    what = f"name {tests} tests that there are" + (", all of which ran and passed" if passed and not faults else "")
    print(f"{good} clauses {what}, {len(faults)} faults")
    sys.exit(1 if faults or not rows else 0)


if __name__ == "__main__":
    main()
