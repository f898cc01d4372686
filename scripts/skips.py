#!/usr/bin/env python3
"""Runs tests and fails if something was skipped for any reason but a missing GPU: skips.py COMMAND...

A test says what it leaves out in a line `SKIPPED: reason`; `cargo test` shows it with `-- --show-output` only.
Exit code: the command's, or 1 where it has none and something was skipped.
"""

import re
import subprocess
import sys

# The only reason for which something may be left out.
ALLOWED = re.compile(r"\bno GPU\b|\bno CUDA driver\b|\bno such CUDA device\b")


def found(log):
    """The reasons of all skips in what tests printed, in order."""
    said = re.findall(r"^SKIPPED:? *(.*)$", log, re.MULTILINE)
    ignored = re.findall(r"^test (\S+)(?: - .*)? \.\.\. ignored(?:, (.*))?$", log, re.MULTILINE)
    return said + [f"{reason or 'ignored'} ({name})" for name, reason in ignored]


def refused(reasons):
    """Those that are no good reason."""
    return sorted({reason for reason in reasons if not ALLOWED.search(reason)})


def main(command):
    reasons = []
    tests = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    for line in tests.stdout:
        print(line, end="", flush=True)
        reasons += found(line)
    code = tests.wait()
    bad = refused(reasons)
    for reason in bad:
        print(f"skipped for no good reason: {reason}", flush=True)
    return code or (1 if bad else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
