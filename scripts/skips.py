#!/usr/bin/env python3
"""Runs tests and fails if something was skipped for any reason but missing hardware: skips.py COMMAND...

Hardware is a GPU, or a processor's vectors. A test says what it leaves out in a line `SKIPPED: reason`; `cargo test`
shows it with `-- --show-output` only. A test that is ignored because it is `on demand` (too large for every run) is
no skip.
Exit code: the command's, or 1 where it has none and something was skipped.
"""

import re
import subprocess
import sys

# The only reasons for which something may be left out.
ALLOWED = re.compile(r"\bno GPU\b|\bno CUDA driver\b|\bno such CUDA device\b|\bthe CUDA driver is of version\b|\bthis processor has no\b")
ON_DEMAND = re.compile(r"^on demand\b")


def found(log):
    """The reasons of all skips in what tests printed, in order."""
    # With one thread, what goes past the harness's capture stands behind the test's name.
    said = re.findall(r"(?:^|\.\.\. )SKIPPED:? *(.*)$", log, re.MULTILINE)
    ignored = re.findall(r"^test (\S+)(?: - .*)? \.\.\. ignored(?:, (.*))?$", log, re.MULTILINE)
    left_out = [(name, reason or "ignored") for name, reason in ignored if not ON_DEMAND.match(reason)]
    return said + [f"{reason} ({name})" for name, reason in left_out]


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
