#!/usr/bin/env python3
"""Runs ninja and says how far it is: a live line on a terminal; elsewhere a line per tenth of the files, and after 15 seconds without one.

What the compiler prints, and the output of a command that failed, comes through as it is.
"""

import argparse
import os
import re
import select
import subprocess
import sys
import time

STATUS = re.compile(rb"^\[(\d+)/(\d+)\] ")
NOTHING = b"ninja: no work to do."


def on_terminal(command, environment):
    """Ninja's own live line."""
    return subprocess.run(command, env=dict(environment, NINJA_STATUS="[%f of %t files, %e s] ")).returncode


class Progress:
    """Takes ninja's lines. Calls report(done, total) for each tenth of the files; other lines are printed."""

    def __init__(self, report):
        self.report = report
        self.tenth = self.done = self.total = 0
        self.said = time.monotonic()

    def say(self):
        self.report(self.done, self.total)
        self.said = time.monotonic()

    def take(self, line):
        status = STATUS.match(line)
        if status:
            self.done, self.total = int(status[1]), int(status[2])
            if self.done < self.total and self.done * 10 // self.total > self.tenth:
                self.tenth = self.done * 10 // self.total
                self.say()
        elif line and not line.startswith((NOTHING, b"ninja: Entering directory")):
            sys.stdout.buffer.write(line)
            sys.stdout.flush()


def elsewhere(command, environment, report, patience=15):
    """Calls report(done, total) for each tenth, and after `patience` seconds without a call; the exit code."""
    ninja = subprocess.Popen(command, env=dict(environment, NINJA_STATUS="[%f/%t] "), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    progress = Progress(report)
    rest = b""
    while True:
        left = max(0, progress.said + patience - time.monotonic())
        if not select.select([ninja.stdout], [], [], left)[0]:
            progress.say()
            continue
        some = os.read(ninja.stdout.fileno(), 1 << 16)
        *lines, rest = (rest + some).split(b"\n")
        for line in lines:
            progress.take(line + b"\n")
        if not some:
            progress.take(rest)
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
        status = elsewhere(command, os.environ, lambda done, total: say(f"{done} of {total} files" if total else "beginning"))
    say("done" if status == 0 else "failed")
    return status


if __name__ == "__main__":
    sys.exit(main())
