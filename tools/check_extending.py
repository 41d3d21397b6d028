#!/usr/bin/env python3
"""Checks what docs/extending.md promises: how many files a new part touches.

Each tests/samples/NAME.patch adds a sample part of one sort. This script applies it to a copy of the tree, so a sample that
has gone stale fails, counts the files that it touches, compares them with the most that LIMITS allows, and asks that the
section of docs/extending.md names each of them. (In the section the sample's own name is written NAME.)

With --compile the copy is also configured, the sample's targets are built and its tests run: so nothing else is needed.
Prints one line for each sample.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# By the sample's file name: the section of docs/extending.md, the name of the part, the most files that it may touch, and
# what --compile builds and then runs.
SAMPLES = {
    "policy": ("An eviction policy", "random", 3, ["tests/policy/test_policy"],
               [["tests/policy/test_policy", "--gtest_filter=*PolicyContract*random"]]),
    "verb": ("A verb", "echo", 7,
             ["src/actors/libterrace_actors.a", "src/client/libterrace_client.a", "tests/protocol/test_protocol"],
             [["tests/protocol/test_protocol"]]),
    "device": ("A device", "tasks", 4, ["tests/gpu/test_gpu"],
               [["tests/gpu/test_gpu", "--gtest_filter=*/tasks"]]),
    "option": ("An option", "heap_kept_bytes", 3, ["src/daemon/terraced", "tests/daemon/test_daemon"],
               [["tests/daemon/test_daemon", "--gtest_filter=SettingsToml.KeepsAsMuchOfAHeapAsItSays"]]),
    "tier": ("A tier", "far", 4, ["src/daemon/terraced", "src/cli/terrace", "tests/e2e/test_e2e"],
             [["tests/e2e/test_e2e", "--gtest_filter=Tiers.PrefixIsFoundOnDisk*:Lifecycle.EndsInOrder*"]]),
}


def touched(patch):
    """The paths on either side of each diff, so that a file which is moved or removed counts too."""
    paths = re.findall(r"^(?:---|\+\+\+) [ab]/(.+)$", patch.read_text(), re.MULTILINE)
    return sorted(set(paths))


def section(title):
    text = (ROOT / "docs/extending.md").read_text()
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def copy_tree(to):
    def left_out(folder, names):
        top = pathlib.Path(folder) == ROOT
        return [n for n in names if n in (".git", "__pycache__") or (top and n.startswith("build"))]
    shutil.copytree(ROOT, to, ignore=left_out, symlinks=True)


def run(command, folder, log, expected=""):
    """True when it ends well and its output has what is expected; otherwise the log gets its end."""
    # Inside somebody else's repository git would look for the paths there. The copy shares the compiler's cache.
    command = ["bash", "-c", '. tools/compiler_cache && exec "$@"', "sample", *command]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent), "CCACHE_BASEDIR": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
    sound = done.returncode == 0 and re.search(expected, done.stdout) is not None
    if not sound:
        log.append(f"{' '.join(command[4:])}:\n{(done.stdout + done.stderr).strip()[-4000:]}")
    return sound


def check(name, compile_it):
    title, part, most, targets, tests = SAMPLES[name]
    patch = ROOT / "tests/samples" / f"{name}.patch"
    paths, errors = touched(patch), []
    if len(paths) > most:
        errors.append(f"touches {len(paths)} files, expected at most {most}: {', '.join(paths)}")
    text = section(title)
    for path in paths:
        if path.replace(part, "NAME") not in text and path not in text:
            errors.append(f'section "{title}" of docs/extending.md does not name {path.replace(part, "NAME")}')
    with tempfile.TemporaryDirectory(prefix="terrace-sample-") as scratch:
        tree = pathlib.Path(scratch) / "tree"
        copy_tree(tree)
        sound = run(["git", "apply", "-C1", str(patch)], tree, errors)
        if sound and compile_it:
            sound = run(["tools/configure", "build", "-Dbench=false"], tree, errors)
            sound = sound and run(["ninja", "-C", "build", "--quiet", *targets], tree, errors)
            for test in tests if sound else []:
                run([f"build/{test[0]}", *test[1:]], tree, errors, r"PASSED  \] [1-9]")
    for error in errors:
        print(f"error: {name}: {error}")
    print(f"a {name} touches {len(paths)} files (at most {most}): {', '.join(paths)}")
    return not errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true", help="build each sample and run its tests")
    parser.add_argument("names", nargs="*", metavar="SAMPLE", help=f"of {', '.join(SAMPLES)}; all if none is named")
    options = parser.parse_args()
    known = {path.stem for path in (ROOT / "tests/samples").glob("*.patch")}
    for name in sorted(known ^ set(SAMPLES)):
        print(f"error: {name}: expected tests/samples/{name}.patch and a row in SAMPLES, one of them is missing")
    results = [check(name, options.compile) for name in options.names or sorted(known & set(SAMPLES))]
    return 0 if results and all(results) and known == set(SAMPLES) else 1


if __name__ == "__main__":
    sys.exit(main())
