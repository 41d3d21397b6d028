#!/usr/bin/env python3
"""Plants each error of this folder in a copy of the source, and says after how many seeds the simulation finds it.

  tests/simulation/planted/find_planted.py [NAME...]

Each NAME.patch makes one error in the daemon. The copy and its build are in build/planted and stay there for the next run.
The last line is `N found, N not found`.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
COPY = ROOT / "build" / "planted"
PROGRAM = "tests/simulation/test_simulated_daemon"


def run(*command, folder=COPY, **options):
    return subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def refresh():
    """Makes the copy what is committed, and what has changed since."""
    if not (COPY / ".git").exists():
        run("git", "clone", "--shared", "--quiet", str(ROOT), str(COPY), folder=ROOT, check=True)
    run("git", "fetch", "--quiet", "origin", check=True)
    commit = run("git", "rev-parse", "HEAD", folder=ROOT, check=True).stdout.strip()
    run("git", "checkout", "--quiet", "--force", "--detach", commit, check=True)


def seed_that_finds(name, seeds):
    """The first seed that fails; 0: none. Text: the error could not be planted."""
    planted = run("git", "apply", str(FOLDER / (name + ".patch")))
    if planted.returncode != 0:
        return "does not apply: " + planted.stdout.strip()
    try:
        built = run("python3", "tools/run_ninja.py", "--build", "build", PROGRAM)
        if built.returncode != 0:
            return "does not build: " + built.stdout[-2000:]
        environment = dict(os.environ, TERRACE_SIMULATION_SEEDS=str(seeds))
        played = run("build/" + PROGRAM, "--gtest_filter=SimulatedDaemon.KeepsItsPromises*", env=environment)
    finally:
        run("git", "checkout", "--quiet", "--force", "HEAD", "--", ".", check=True)
    seed = re.search(r"(.*)\n *repeat it with: ./test simulation --seed (\d+)", played.stdout)
    if seed:
        print(f"  {seed[1].strip()}", flush=True)
        return int(seed[2])
    return 0 if played.returncode == 0 else "ended without naming a seed: " + played.stdout[-2000:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = options.names or sorted(path.stem for path in FOLDER.glob("*.patch"))
    refresh()
    if run("tools/configure", "build").returncode != 0:
        sys.exit("the copy cannot be configured")
    found = 0
    for name in names:
        seed = seed_that_finds(name, options.seeds)
        found += isinstance(seed, int) and seed > 0
        print(f"{name}: " + (str(seed) if seed else f"not found by {options.seeds} seeds"), flush=True)
    print(f"{found} found, {len(names) - found} not found")
    sys.exit(0 if found == len(names) else 1)


if __name__ == "__main__":
    main()
