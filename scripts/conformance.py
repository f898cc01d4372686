#!/usr/bin/env python3
"""Checks docs/conformance.md: each clause names a test, and each named test exists as a #[test] of its file."""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
table = (root / "docs" / "conformance.md").read_text(encoding="utf-8")
rows = re.findall(r"^\| ([A-Z][\d.]*-\d+) \| (.*) \| (.*) \|$", table, re.MULTILINE)
faults = []


def tests_of(path):
    """Names of the functions that are tests, inside proptest! or not."""
    text = path.read_text(encoding="utf-8")
    return set(re.findall(r"#\[test\]\s*(?:#\[[^\]]*\]\s*|//[^\n]*\s*)*fn (\w+)", text))


files = {}
for folder, prefix in (("tests", ""), ("artifact/tests", "artifact/"), ("src", "src/")):
    for path in sorted((root / folder).rglob("*.rs")):
        files[prefix + str(path.relative_to(root / folder).with_suffix(""))] = tests_of(path)

for clause, _, cell in rows:
    names = re.findall(r"`([^`]+)`", cell)
    if not names:
        faults.append(f"{clause}: no test is named")
    for name in names:
        file, _, function = name.rpartition("::")
        if function not in files.get(file, ()):
            faults.append(f"{clause}: no test {name}")
if len({clause for clause, _, _ in rows}) != len(rows):
    faults.append("a clause stands twice")
print("\n".join(faults))
print(f"{len(rows) - len({fault.split(':')[0] for fault in faults})} clauses passed, {len(faults)} faults")
sys.exit(1 if faults or not rows else 0)
