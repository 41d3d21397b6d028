#!/usr/bin/env python3
"""The list of flaky tests: those that failed, and passed twice when they were run again alone.

    flaky_tests.py [LIST]...   prints lists that tools/run_tests.py has written, build/ci/flaky.json by default

The exit code is 1 if they fail a run: they have more than three tests, or one that tests/known_flaky names.
"""

import argparse
import datetime
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "build/ci/flaky.json"
KNOWN = ROOT / "tests/known_flaky"
FLAKY_MAX = 3
LOG_LINES = 20  # of each test's log, on the terminal; the list has all


def read(path):
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return []


def write(path, build, tests):
    """Replaces the tests of this build in the list: another build's run may have begun it."""
    everything = [test for test in read(path) if test["build"] != build] + tests
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(everything, indent=1) + "\n")


def known(path=KNOWN):
    """Program and name of each test of the last landed list. Raises ValueError."""
    tests = set()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(maxsplit=3)
        try:
            datetime.date.fromisoformat(words[0])
            _, program, name, _ = words
        except ValueError:
            raise ValueError(f"{path}:{number}: expected `YYYY-MM-DD PROGRAM TEST what is known`, got `{line}`") from None
        tests.add((program, name))
    return tests


def program_of(name):
    """`e2e-0`, `e2e-1` and so on are parts of `e2e`; a test may move from one to another."""
    return re.sub(r"-\d+$", "", name)


def again(tests, known_tests):
    """Those that were flaky in the last landed list already."""
    return [test for test in tests if (program_of(test["program"]), test["name"]) in known_tests]


def show(tests, known_tests):
    """Prints the tests and what fails the run. True: they do not."""
    for test in tests:
        print(f"flaky: {test['program']} {test['name']} ({test['build']}) failed, and passed twice alone:")
        for line in test["log"].splitlines()[-LOG_LINES:]:
            print(f"    {line}")
    for test in again(tests, known_tests):
        print(f"flaky again: {test['program']} {test['name']} is in tests/known_flaky: mend it and remove its entry")
    if len(tests) > FLAKY_MAX:
        print(f"{len(tests)} tests are flaky, and at most {FLAKY_MAX} may be")
    return len(tests) <= FLAKY_MAX and not again(tests, known_tests)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", type=pathlib.Path, nargs="*", default=[LIST], metavar="LIST")
    try:
        return 0 if show([test for path in parser.parse_args().lists for test in read(path)], known()) else 1
    except ValueError as why:
        print(why)
        return 1


if __name__ == "__main__":
    sys.exit(main())
