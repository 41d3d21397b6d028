#!/usr/bin/env python3
"""Runs clang-tidy over the sources of src/, in parallel and in bounded time.

A file whose preprocessed text was found clean before, under the same checks, is not looked at again. When time is up
the rest is named and left for the next run: lint finds bugs early, it does not hold up a build.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a configured and built folder")
    parser.add_argument("--seconds", type=int, default=600, help="no file is begun after so long")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    salt = version + (ROOT / ".clang-tidy").read_bytes()

    def check(entry):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        name = fingerprint(entry, salt)
        if name and (CACHE / name).exists():
            return "known", path, ""
        if time.monotonic() > end:
            return "late", path, ""
        done = subprocess.run(["clang-tidy", "--quiet", "-p", str(options.build),
                               "--extra-arg=-Wno-unknown-warning-option", str(path)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return "bad", path, done.stdout or done.stderr
        if name:
            (CACHE / name).touch()
        return "clean", path, ""

    entries = json.loads((options.build / "compile_commands.json").read_text())
    entries = [e for e in entries if (ROOT / "src") in pathlib.Path(e["directory"], e["file"]).resolve().parents]
    counts = {"known": 0, "clean": 0, "late": 0, "bad": 0}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for state, path, text in pool.map(check, entries):
            counts[state] += 1
            if state == "bad":
                print(text)
            elif state == "late":
                print(f"not checked, time is up: {path.relative_to(ROOT)}")
    print(f"{counts['clean'] + counts['known']} files are clean ({counts['known']} known from before), "
          f"{counts['bad']} have findings, {counts['late']} were not reached")
    return 1 if counts["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
