#!/usr/bin/env python3
"""Sums up lcov files: coverage.py ROOT FILE... FOLDER, where FOLDER holds the files."""

import collections
import itertools
import pathlib
import sys

root, *files, folder = sys.argv[1:]
lines = collections.defaultdict(dict)
for file in files:
    for record in (pathlib.Path(folder) / file).read_text().splitlines():
        kind, _, value = record.partition(":")
        if kind == "SF":
            path = pathlib.Path(value)
            name = str(path.relative_to(root)) if path.is_relative_to(f"{root}/src") else None
        elif name is None:
            continue  # what came along from elsewhere
        elif kind == "DA":
            number, count = map(int, value.split(",")[:2])
            lines[name][number] = max(lines[name].get(number, 0), count)

total = reached = 0
missing = []
for name, counts in sorted(lines.items()):
    if name.startswith("src/cuda/") or name.endswith("tests.rs"):
        continue
    zeros = sorted(number for number, count in counts.items() if not count)
    total += len(counts)
    reached += len(counts) - len(zeros)
    share = 100 * (len(counts) - len(zeros)) / len(counts)
    print(f"{name:44} {len(counts) - len(zeros):5} of {len(counts):5} {share:6.1f} %")
    ranges = []
    for _, run in itertools.groupby(enumerate(zeros), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in run]
        ranges.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    if ranges:
        missing.append(f"{name}: {', '.join(ranges)}")
print(f"{'src':44} {reached:5} of {total:5} {100 * reached / total:6.1f} %")
print("\nnot reached:", *missing, sep="\n")
