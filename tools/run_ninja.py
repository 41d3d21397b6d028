#!/usr/bin/env python3
"""Runs ninja and says how far it is: a live line on a terminal, a line per tenth of the files elsewhere.

What the compiler prints, and the output of a command that failed, comes through as it is.
"""

import argparse
import os
import re
import subprocess
import sys
import time

STATUS = re.compile(rb"^\[(\d+)/(\d+)\] ")
NOTHING = b"ninja: no work to do."


def on_terminal(command, environment):
    """Ninja's own live line."""
    return subprocess.run(command, env=dict(environment, NINJA_STATUS="[%f of %t files, %e s] ")).returncode


def elsewhere(command, environment, report):
    """Calls report(done, total) for each tenth; the exit code. Lines that are no status are printed."""
    ninja = subprocess.Popen(command, env=dict(environment, NINJA_STATUS="[%f/%t] "), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    tenth = 0
    for line in ninja.stdout:
        status = STATUS.match(line)
        if status:
            done, total = int(status[1]), int(status[2])
            if done < total and done * 10 // total > tenth:
                tenth = done * 10 // total
                report(done, total)
        elif not line.startswith((NOTHING, b"ninja: Entering directory")):
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
    return ninja.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="the configured folder")
    parser.add_argument("--name", default="everything", help="what is built, for the lines that are printed")
    parser.add_argument("targets", nargs="*", help="of ninja; all by default")
    options = parser.parse_args()
    command = ["ninja", "-C", options.build, *options.targets]
    begin = time.monotonic()

    def say(what):
        print(f"building {options.name}: {what}, {time.monotonic() - begin:.0f} s", flush=True)

    if sys.stdout.isatty():
        status = on_terminal(command, os.environ)
    else:
        status = elsewhere(command, os.environ, lambda done, total: say(f"{done} of {total} files"))
    say("done" if status == 0 else "failed")
    return status


if __name__ == "__main__":
    sys.exit(main())
