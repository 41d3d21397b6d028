#!/usr/bin/env python3
"""Runs the test programs of a build folder and counts their cases.

Every program of `meson test` is run. A program written with GoogleTest counts its cases; any other counts as one.
`e2e` stands for its parts, `e2e-0` and so on.
A program that fails without a failed case (it crashed, or ran out of time) counts as one failure more.

A case that failed is run again twice, after all others and alone. If it passes both times it is flaky: it counts as
passed, is named with its log in the last lines, and is kept in a list. The run fails if more than three tests are flaky, or
one that tests/known_flaky names. Programs without cases, and those that ended early, are run again as a whole.

The last line is always `N passed, N failed`, with `, N skipped` behind it where cases were skipped.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections import Counter

import flaky_tests

SOUND = {"OK", "SKIP", "EXPECTEDFAIL"}
RERUNS = 2
RERUN_TESTS_MAX = 20  # when more have failed, something is broken for all of them
LOG_CHARACTERS = 65_536  # kept of a failing run


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


def log_of(record, case):
    """The output of a failing run: of one case, or all of it when `case` is None. A daemon's words are in stderr."""
    out, err = record.get("stdout") or "", record.get("stderr") or ""
    if case:
        part = re.search(rf"^\[ RUN +\] {re.escape(case)}$.*?^\[ +FAILED +\] {re.escape(case)}", out, re.MULTILINE | re.DOTALL)
        out = part[0] if part else out
    return (err[-LOG_CHARACTERS // 2:] + "\n" + out[-LOG_CHARACTERS // 2:]).strip()


class Alone:
    """Runs one test at a time again, with nothing beside it. `limits`: seconds, by the names of the programs."""

    def __init__(self, places, limits, reports):
        self.places, self.limits, self.reports = places, limits, reports / "alone"

    def run(self, record, case):
        """Runs a case, or the program when `case` is None. Its counts if it passes; None if not."""
        name = record["name"].split(" / ")[-1]
        shutil.rmtree(self.reports, ignore_errors=True)
        self.reports.mkdir(parents=True)
        environment = dict(record["env"], GTEST_OUTPUT=f"xml:{self.reports}/", GTEST_COLOR="no")
        command = [word for word in record["command"] if not word.startswith("--gtest_output")]
        if case:
            for part in ("GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"):  # the parts would be those of this one case
                environment.pop(part, None)
            command.append(f"--gtest_filter={case}")
        with open(self.reports / "output", "w+") as output:
            child = subprocess.Popen(command, cwd=self.places[name], env=environment, stdin=subprocess.DEVNULL,
                                     stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = child.wait(self.limits[name])
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                status = None
        counts = cases_of(self.reports / f"{pathlib.Path(command[0]).name}.xml")
        if status != 0 or (case and (counts or {}).get("passed") != 1):
            print(f"{case or name} failed again alone:", flush=True)
            print((self.reports / "output").read_text(errors="replace")[-4096:], flush=True)
            return None
        return counts or Counter(passed=1)

    def is_flaky(self, record, case):
        """The counts of the last of its runs if all pass; None if one fails, after which no other is begun."""
        counts = None
        for _ in range(RERUNS):
            counts = self.run(record, case)
            if counts is None:
                return None
        return counts


def failed_cases(record, report):
    """The failed cases to be run again; [None] is the program as a whole."""
    cases = [case for case, _ in failures_of(report)] if report else []
    return [None] if not cases or any(case.startswith("NonTestSuiteFailure") for case in cases) else cases


def judge(failures, alone, build):
    """Runs again what failed: pairs of a line of meson's log and its counts, which lose what was flaky. The flaky ones."""
    tests = [(record, counts, case) for record, counts, report in failures for case in failed_cases(record, report)]
    if len(tests) > RERUN_TESTS_MAX:
        print(f"{len(tests)} tests failed: too many to run them again", flush=True)
        return []
    flaky = []
    for record, counts, case in tests:
        passed = alone.is_flaky(record, case)
        if passed is None:
            continue
        name = record["name"].split(" / ")[-1]
        if case:
            counts.subtract(failed=1)
            counts["passed"] += 1
        else:
            counts.clear()
            counts.update(passed)
        flaky.append({"name": case or name, "program": name, "build": build, "log": log_of(record, case)})
    return flaky


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the configured and built folder")
    # One more than there are processors: the end-to-end tests wait for daemons and stores most of the time.
    parser.add_argument("--jobs", type=int, default=os.cpu_count() + 1, help="test programs at a time")
    parser.add_argument("--slower", type=int, default=3, help="multiplies every program's time limit")
    parser.add_argument("--flaky", type=pathlib.Path, default=flaky_tests.LIST, help="where the flaky tests are listed")
    parser.add_argument("--known-flaky", type=pathlib.Path, default=flaky_tests.KNOWN, help="those that may not be again")
    parser.add_argument("--check", action="store_true", help="only check the names of the test programs")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="leave this test program out")
    parser.add_argument("names", nargs="*", help="test programs, such as `memory`; all by default")
    options = parser.parse_args()
    build = options.build.resolve()
    reports = build / "test-reports"

    known = json.loads((build / "meson-info" / "intro-tests.json").read_text())
    try:
        known_flaky = flaky_tests.known(options.known_flaky)
    except ValueError as why:
        print(f"{why}\n0 passed, 1 failed", flush=True)
        return 1
    limits = {test["name"]: test["timeout"] * options.slower or None for test in known}
    places = {test["name"]: pathlib.Path(test["workdir"] or build) for test in known}
    parts = {name: [part for part in places if re.fullmatch(re.escape(name) + r"-\d+", part)] for name in options.names}
    unknown = [name for name in options.names + options.without if name not in places and not parts.get(name)]
    names = [part for name in options.names for part in (parts[name] or [name])]
    if options.without:
        names = [name for name in names or places if name not in options.without]
    if unknown:
        print(f"no test program is named {', '.join(unknown)}; there are: {' '.join(sorted(places))}", flush=True)
    if options.check or unknown:
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

    programs = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    all_counts, failures = [], []
    for record in programs:
        report, counts = report_of(record, places, reports)
        for case, message in failures_of(report) if report else ():
            print(f"{case} failed: {message}", flush=True)
        counts = count(record, counts)
        all_counts.append(counts)
        if record["result"] == "SKIP":
            said = (record.get("stdout") or "").strip().splitlines()
            print(f"{record['name']}: {said[-1] if said else 'skipped'}", flush=True)
        if counts["failed"]:
            print(f"{record['name']}: {record['result']}, {counts['failed']} failed", flush=True)
            failures.append((record, counts, report))

    flaky = judge(failures, Alone(places, limits, reports), options.build.name)
    flaky_tests.write(options.flaky, options.build.name, flaky)
    total = sum(all_counts, Counter())
    if status != 0 and not failures:
        print(f"meson test ended with {status}, though no case failed")
        total["failed"] += 1
    if not flaky_tests.show(flaky, known_flaky):
        total["failed"] += 1
    if not programs:
        print("no test program was run")
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}", flush=True)
    return 1 if total["failed"] or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
