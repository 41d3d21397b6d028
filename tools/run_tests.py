#!/usr/bin/env python3
"""Runs the test programs of a build folder and counts their cases.

Every program of `meson test` is run. A program written with GoogleTest counts its cases; any other counts as one.
`e2e` stands for its parts, `e2e-0` and so on.
A program that fails without a failed case (it crashed, or ran out of time) counts as one failure more.
The last line is always `N passed, N failed`, with `, N skipped` behind it where cases were skipped.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections import Counter

SOUND = {"OK", "SKIP", "EXPECTEDFAIL"}


def cases_of(report):
    """Counts the cases of one GoogleTest report; None when it is missing or was cut short."""
    try:
        suites = xml.parse(report).getroot()
    except (OSError, xml.ParseError):
        return None
    counts = Counter()
    for case in suites.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            counts["skipped"] += 1
        elif case.get("status") == "run":
            counts["passed"] += 1
    return counts


def failures_of(report):
    """Name and message of each failed case of a GoogleTest report: what it prints may be too much for meson to show."""
    for case in xml.parse(report).getroot().iter("testcase"):
        for failure in [*case.iter("failure"), *case.iter("error")]:
            yield f"{case.get('classname')}.{case.get('name')}", (failure.text or failure.get("message") or "").strip()


def report_of(record, places, reports):
    """The GoogleTest report of one line of meson's log, and its counts; twice None when it has none."""
    name = record["name"].split(" / ")[-1]
    program = pathlib.Path(record["command"][0]).name
    # With meson's protocol `gtest` the report lies where the program ran, otherwise where we asked for it.
    for report in (places.get(name, reports.parent) / f"{name}.xml", reports / f"{program}.xml"):
        counts = cases_of(report)
        if counts is not None:
            return report, counts
    return None, None


def count(record, counts):
    """The counts of one line of meson's log. `counts`: those of its report, if it has one."""
    sound = record["result"] in SOUND
    if counts is None:
        key = "skipped" if record["result"] == "SKIP" else "passed" if sound else "failed"
        return Counter({key: 1})
    if not sound and counts["failed"] == 0:
        counts["failed"] = 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the configured and built folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="test programs at a time")
    parser.add_argument("--slower", type=int, default=3, help="multiplies every program's time limit")
    parser.add_argument("--check", action="store_true", help="only check the names of the test programs")
    parser.add_argument("names", nargs="*", help="test programs, such as `memory`; all by default")
    options = parser.parse_args()
    build = options.build.resolve()
    reports = build / "test-reports"

    known = json.loads((build / "meson-info" / "intro-tests.json").read_text())
    places = {test["name"]: pathlib.Path(test["workdir"] or build) for test in known}
    parts = {name: [part for part in places if re.fullmatch(re.escape(name) + r"-\d+", part)] for name in options.names}
    unknown = [name for name in options.names if name not in places and not parts[name]]
    names = [part for name in options.names for part in (parts[name] or [name])]
    if unknown:
        print(f"no test program is named {', '.join(unknown)}; there are: {' '.join(sorted(places))}", flush=True)
    if options.check:
        return 1 if unknown else 0

    # A report left over from an earlier run would hide a crash of this one.
    for stale in [*(place / f"{name}.xml" for name, place in places.items()), *reports.glob("*.xml")]:
        stale.unlink(missing_ok=True)
    log = build / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    environment = dict(os.environ, GTEST_OUTPUT=f"xml:{reports}/", GTEST_COLOR="no")
    command = ["meson", "test", "-C", str(build), "--no-rebuild", "--print-errorlogs", "--num-processes",
               str(options.jobs), "--timeout-multiplier", str(options.slower), *names]
    status = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode

    total = Counter()
    programs = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for record in programs:
        report, counts = report_of(record, places, reports)
        for case, message in failures_of(report) if report else ():
            print(f"{case} failed: {message}", flush=True)
        counts = count(record, counts)
        total += counts
        if record["result"] == "SKIP":
            said = (record.get("stdout") or "").strip().splitlines()
            print(f"{record['name']}: {said[-1] if said else 'skipped'}", flush=True)
        if counts["failed"]:
            print(f"{record['name']}: {record['result']}, {counts['failed']} failed", flush=True)
    if status != 0 and total["failed"] == 0:
        print(f"meson test ended with {status}, though no case failed")
        total["failed"] = 1
    if not programs:
        print("no test program was run")
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}", flush=True)
    return 1 if status != 0 or total["failed"] or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
