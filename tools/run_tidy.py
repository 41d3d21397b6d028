#!/usr/bin/env python3
"""Runs clang-tidy over the sources of src/, in parallel and, if asked, in bounded time.

A file whose preprocessed text was found clean before, under the same checks, is not looked at again. Files that were
changed last come first: when time is up, those that are left have stood for longest. They are counted, and left for the
next run.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "terrace" / "tidy"


def fingerprint(entry, salt):
    """Names what clang-tidy would see: the preprocessed text and the checks."""
    arguments = [a for a in shlex.split(entry["command"]) if a != "ccache"]
    if "-o" in arguments:
        at = arguments.index("-o")
        del arguments[at:at + 2]
    text = subprocess.run([*arguments, "-E", "-P"], cwd=entry["directory"], capture_output=True)
    return hashlib.sha256(salt + text.stdout).hexdigest() if text.returncode == 0 else None


def newest_first():
    """Ranks paths by how lately they were changed: not committed yet, then by commit."""
    def git(*arguments):
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return [line for line in done.stdout.splitlines() if line]

    ranks = {}
    for name in [*git("diff", "--name-only", "HEAD"), *git("log", "--format=", "--name-only", "-n", "200")]:
        ranks.setdefault(name, len(ranks))
    return ranks


def sources(build, rooms):
    """The compiler's commands for the wanted sources, newest first."""
    ranks = newest_first()
    found = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if ROOT / "src" not in path.parents:
            continue
        name = path.relative_to(ROOT)
        if not rooms or name.parts[1] in rooms:
            found.append((ranks.get(str(name), len(ranks)), str(name), entry))
    return [(name, entry) for _, name, entry in sorted(found, key=lambda item: item[:2])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a configured and built folder")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no file is begun after so long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files at a time")
    parser.add_argument("rooms", nargs="*", help="folders of src/; all by default")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    salt = version + (ROOT / ".clang-tidy").read_bytes()

    def check(source):
        name, entry = source
        if time.monotonic() > end:
            return "late", ""
        known = fingerprint(entry, salt)
        if known and (CACHE / known).exists():
            return "known", ""
        done = subprocess.run(["clang-tidy", "--quiet", "-p", str(options.build),
                               "--extra-arg=-Wno-unknown-warning-option", str(ROOT / name)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return "bad", done.stdout or done.stderr
        if known:
            (CACHE / known).touch()
        return "clean", ""

    counts = {"known": 0, "clean": 0, "late": 0, "bad": 0}
    with ThreadPoolExecutor(options.jobs) as pool:
        for state, text in pool.map(check, sources(options.build, options.rooms)):
            counts[state] += 1
            if text:
                print(text, flush=True)
    late = f"; {counts['late']} that were changed longer ago were not reached" if counts["late"] else ""
    print(f"{counts['clean'] + counts['known']} files are clean ({counts['known']} known from before), "
          f"{counts['bad']} have findings{late}")
    return 1 if counts["bad"] or not counts["clean"] + counts["known"] else 0


if __name__ == "__main__":
    sys.exit(main())
