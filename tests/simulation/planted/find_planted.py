#!/usr/bin/env python3
"""Plants each error of this folder in a copy of the source, and says after how many seeds the simulation finds it.

  tests/simulation/planted/find_planted.py [NAME...]

Each NAME.patch makes one error in the daemon. The copy and its build are in build/planted and stay there for the next run;
the copy has what is committed and what has changed since, but not files that git does not know. The output is a table, as
in docs/checks.md, and `N found, N not found`.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
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
    changed = run("git", "stash", "create", folder=ROOT, check=True).stdout.strip() # a commit that no branch has
    commit = changed or run("git", "rev-parse", "HEAD", folder=ROOT, check=True).stdout.strip()
    run("git", "checkout", "--quiet", "--force", "--detach", commit, check=True)


def build(name):
    """Builds the simulation with this error. Returns its program, or why there is none."""
    planted = run("git", "apply", str(FOLDER / (name + ".patch")))
    if planted.returncode != 0:
        return None, "does not apply: " + planted.stdout.strip()
    try:
        built = run("python3", "tools/run_ninja.py", "--build", "build", PROGRAM)
        if built.returncode != 0:
            return None, "does not build: " + built.stdout[-2000:]
        program = COPY / "build" / ("simulation_" + name)
        shutil.copy(COPY / "build" / PROGRAM, program)
        return program, ""
    finally:
        run("git", "checkout", "--quiet", "--force", "HEAD", "--", ".", check=True)


def what_finds(program, seeds):
    """The first seed that fails, and what it says; seed 0: none does."""
    environment = dict(os.environ, TERRACE_SIMULATION_SEEDS=str(seeds))
    played = run(str(program), "--gtest_filter=SimulatedDaemon.KeepsItsPromises*", "--gtest_fail_fast", env=environment)
    program.unlink()
    told = re.search(r"(.*)\n *repeat it with: ./test simulation --seed (\d+)", played.stdout)
    if told:
        return int(told[2]), told[1].strip()
    return 0, f"not found by {seeds} seeds" if played.returncode == 0 else "no seed is named: " + played.stdout[-2000:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--together", type=int, default=3, help="errors that are played at a time, beside one that is built")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = options.names or sorted(path.stem for path in FOLDER.glob("*.patch"))
    refresh()
    if run("tools/configure", "build").returncode != 0:
        sys.exit("the copy cannot be configured")
    print("| planted error | seed | what is told |\n|---|---|---|", flush=True)

    def play(name, program):
        seed, told = what_finds(program, options.seeds)
        print(f"| {name.replace('_', ' ')} | {seed or '-'} | {told} |", flush=True)
        return seed > 0

    # One is built while others play their seeds.
    with concurrent.futures.ThreadPoolExecutor(options.together) as players:
        played = []
        for name in names:
            program, why = build(name)
            if program:
                played.append(players.submit(play, name, program))
            else:
                print(f"| {name.replace('_', ' ')} | - | {why} |", flush=True)
        found = sum(each.result() for each in played)
    print(f"{found} found, {len(names) - found} not found")
    sys.exit(0 if found == len(names) else 1)


if __name__ == "__main__":
    main()
