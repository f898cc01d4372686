#!/usr/bin/env python3
"""Breaks clauses of docs/conformance.md and shows that their tests notice.

break.py CLAUSE...   for each clause: applies tests/breaks/CLAUSE.patch to a copy of the repository under target/,
                     builds and runs the tests that the table names for it, and takes the patch back
break.py --all       the same for every clause that has a patch
break.py --check     only checks that every patch is one of a clause of the table, and still applies

Before anything is broken the same tests are run as they are, and must pass. A patch counts if the broken code
compiles and at least one of the clause's tests fails. The copy takes its dependencies from the usual target folder; what
is of this repository is built without debug information, as it is built once and thrown away.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from conformance import ROOT, clauses, split

PATCHES = ROOT / "tests/breaks"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
COPY = TARGET / "breaks"
# No repository is to be found from the copy on upwards: git apply leaves out paths beside its own folder.
QUIET = {"CARGO_TARGET_DIR": str(TARGET), "GIT_CEILING_DIRECTORIES": str(TARGET), "RUST_BACKTRACE": "0"}
ENVIRONMENT = os.environ | QUIET | {"CARGO_TERM_COLOR": "never", "PROPTEST_MAX_SHRINK_ITERS": "0"}
PACKAGES = ("ninfer-codec", "ninfer-artifact")
CARGO = ["cargo", "test", "--locked", *(f"--config=profile.dev.package.{package}.debug=false" for package in PACKAGES)]
# Clauses of which a patch is asked for.
LEAST = 96
LONGEST = 1200  # seconds that a build, or a run of tests, may take


def refresh():
    """Makes the copy what the checkout is; files that are the same keep their times, so that little is rebuilt."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, COPY / name
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    for path in [path for path in COPY.rglob("*") if path.is_file()]:
        if str(path.relative_to(COPY)) not in names:
            path.unlink()


def git_apply(patch, *options):
    command = ["git", "apply", *options, str(patch)]
    return subprocess.run(command, cwd=COPY, env=ENVIRONMENT, capture_output=True, text=True)


def run_tests(names):
    """Builds and runs tests of the table; gives (whether all compiled, each name's `ok`, `FAILED...` or `-`, output)."""
    targets = {}
    for name in names:
        package, target, path = split(name)
        targets.setdefault((package, target), {})[path] = name
    results, output = dict.fromkeys(names, "-"), ""
    for (package, target), paths in targets.items():
        what = ["--lib"] if target == "lib" else ["--test", target]
        command = [*CARGO, "--package", package, *what]
        built = call([*command, "--no-run"])
        output += built.stdout + built.stderr
        if built.returncode != 0:
            return False, results, output
        ran = call([*command, "--", "--exact", *paths])
        output += ran.stdout + ran.stderr
        for path, result in re.findall(r"^test (\S+) \.\.\. (ok|FAILED)", ran.stdout, re.MULTILINE):
            results[paths[path]] = result
        # A test that takes its process with it, as by an exception of the processor's, prints no result.
        killed = re.search(r"\(signal: \d+, (?!SIGKILL)(\w+)", ran.stderr)
        if killed and len(paths) == 1:
            results[next(iter(paths.values()))] = f"FAILED by {killed[1]}"
    return True, results, output


def call(command):
    try:
        return subprocess.run(
            command, cwd=COPY, env=ENVIRONMENT, capture_output=True, text=True, errors="replace", timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"more than {LONGEST} s\n")


def break_clause(clause, names):
    """Whether the clause's patch makes one of its tests fail; prints a line."""
    patch = PATCHES / f"{clause}.patch"
    begin = time.monotonic()
    applied = git_apply(patch)
    if applied.returncode != 0:
        print(f"{clause}: the patch does not apply\n{applied.stderr}", flush=True)
        return False
    try:
        compiled, results, output = run_tests(names)
    finally:
        refresh()
    failed = compiled and any(result.startswith("FAILED") for result in results.values())
    said = ", ".join(f"{name} {result}" for name, result in results.items()) if compiled else "does not compile"
    title = patch.read_text(encoding="utf-8").partition("\n")[0]
    print(f"{clause:7} {title}: {said} ({time.monotonic() - begin:.0f} s)", flush=True)
    if not failed:
        print("\n".join(output.splitlines()[-40:]), file=sys.stderr, flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("clause", nargs="*")
    options = parser.parse_args()
    table = {clause: names for clause, _, names in clauses()}
    patched = [path.stem for path in PATCHES.glob("*.patch")]
    faults = [f"{clause}: a patch, but no such clause" for clause in patched if clause not in table]
    faults += [f"{clause}: has no patch" for clause in options.clause if clause not in patched]
    wanted = [clause for clause in table if clause in patched and (clause in options.clause or not options.clause)]
    if not (options.all or options.check or options.clause):
        parser.error("name a clause, or --all, or --check")
    refresh()
    if options.check:
        faults += [f"{clause}: does not apply" for clause in wanted if git_apply(PATCHES / f"{clause}.patch", "--check").returncode]
        if len(wanted) < LEAST:
            faults.append(f"{len(wanted)} clauses have a patch, fewer than {LEAST}")
        done = "apply"
    elif not faults:
        names = list(dict.fromkeys(name for clause in wanted for name in table[clause]))
        compiled, results, output = run_tests(names)
        if not compiled or set(results.values()) != {"ok"}:
            sys.exit(f"{output}\nthe tests do not all pass as they are: {results}")
        print(f"as they are, {len(names)} tests pass", flush=True)
        faults += [f"{clause}: no test failed" for clause in wanted if not break_clause(clause, table[clause])]
        done = "break a clause and fail its test"
    for fault in faults:
        print(fault)
    print(f"{len(wanted) - len(faults)} of {len(wanted)} patches {done}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
