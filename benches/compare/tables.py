#!/usr/bin/env python3
"""Writes the tables of a run into the documentation: tables.py RESULT.json ../../docs/performance.md

RESULT.json is what the comparison program wrote with --json. Each table stands between a mark `<!-- NAME -->` and the next
`<!-- end -->`; everything else is left as it is.
"""

import json
import re
import sys
from pathlib import Path

OURS = ("portable", "avx2", "avx512")


def giga(record, start):
    """Weights a second of the contender whose name begins so, in billions."""
    for timing in record["timings"]:
        if timing["role"] != "limit" and timing["name"].startswith(start):
            return f"{timing['weights_per_second'] / 1e9:.2f}"
    return "-"


def limit(record):
    return max((timing for timing in record["timings"] if timing["role"] == "limit"), key=rate)


def rate(timing):
    return timing["weights_per_second"]


def of_limit(record):
    """What the best of our backends that was measured reaches of the limit."""
    ours = {timing["name"]: timing["of_limit"] for timing in record["timings"] if timing["role"] == "ours"}
    best = next((ours[name] for name in reversed(OURS) if name in ours), None) or next(iter(ours.values()))
    return f"{best:.2f}"


def table(head, rows):
    columns = head.count("|") - 1
    return "\n".join([head, "|---" + "|---:" * (columns - 1) + "|", *rows])


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def main(result, document):
    report = json.loads(Path(result).read_text())
    records = {record["name"]: record for record in report["records"]}

    def works(place, pages, operations, threads=1):
        for record in report["records"]:
            if (record["place"], record["pages"], record["threads"]) == (place, pages, threads):
                if record["operation"] in operations:
                    name = " ".join(record["name"].split()[:3])
                    yield name + (f", {record['note']}" if record["note"] else ""), record

    def inside(operations):
        return table(
            "| work | portable | AVX2 | AVX-512 | limit | of the limit | ggml | candle |",
            [
                row(name, *(giga(record, ours) for ours in OURS), f"{rate(limit(record)) / 1e9:.2f}",
                    of_limit(record), giga(record, "ggml"), giga(record, "candle"))
                for name, record in works("L2", "4 kB", operations)
            ],
        )

    def beyond(operations):
        lines = []
        for name, record in works("memory", "4 kB", operations):
            huge = records.get(record["name"].replace("mem 4k", "mem 2M"))
            lines.append(
                row(name, *(giga(record, ours) for ours in OURS), f"{rate(limit(record)) / 1e9:.2f}",
                    of_limit(record), of_limit(huge) if huge else "-")
            )
        return table("| work | portable | AVX2 | AVX-512 | limit | of the limit | of it, 2 MB pages |", lines)

    def threads():
        ratios = {}
        for place in ("L2", "memory"):
            for pages in ("4 kB", "2 MB"):
                for name, record in works(place, pages, ("decode", "quantize"), 2):
                    ratios.setdefault(name, {})[place, pages] = of_limit(record)
        keys = [("L2", "4 kB"), ("L2", "2 MB"), ("memory", "4 kB"), ("memory", "2 MB")]
        return table(
            "| work | L2, 4 kB | L2, 2 MB | memory, 4 kB | memory, 2 MB |",
            [row(name, *(found.get(key, "-") for key in keys)) for name, found in ratios.items()],
        )

    def missed():
        goals = {}
        for goal in report["goals"]:
            if goal["measured"] is not None and goal["measured"] < goal["wanted"]:
                reach = goal["limit_reaches"]
                most = f" (the limit itself: {reach:.1f})" if reach else ""
                key = goal["goal"], f"{goal['wanted']:g}", goal["pages"]
                goals.setdefault(key, []).append(f"{short(goal['work'])} {goal['measured']:.3f}{most}")
        measured = sum(goal["measured"] is not None for goal in report["goals"])
        head = "| goal | pages | at least | works that miss it |"
        lines = [row(name, pages, wanted, ", ".join(works)) for (name, wanted, pages), works in goals.items()]
        met = measured - sum(map(len, goals.values()))
        return f"{met} of {measured} are met. The others:\n\n{head}\n|---|---|---:|---|\n" + "\n".join(lines)

    def short(work):
        return " ".join(word for word in work.split() if word not in ("words", "L2", "mem", "4k", "2M", "threads"))

    made = {
        "decode inside L2": inside(["decode"]),
        "decode from memory": beyond(["decode"]),
        "quantize inside L2": inside(["quantize"]),
        "quantize from memory": beyond(["quantize"]),
        "bytes inside L2": inside(["pack", "unpack", "gather", "gather-random", "validate"]),
        "bytes from memory": beyond(["pack", "unpack", "gather", "gather-random", "validate"]),
        "two threads": threads(),
        "goals missed": missed(),
    }
    text = Path(document).read_text()
    for name, lines in made.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, count = pattern.subn(lambda match, lines=lines: f"{match[1]}\n{lines}\n\n{match[2]}", text)
        if count != 1:
            sys.exit(f"{document}: {count} places for {name}")
    Path(document).write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
