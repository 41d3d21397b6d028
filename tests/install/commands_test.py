#!/usr/bin/env python3
"""Mistakes in the command lines of ./run, ./test and tools/build_deb are reported at once, before anything is installed or
built, in one line that names the mistake; and of a case that failed, ./test shows what failed in it.

    commands_test.py BUILD_FOLDER
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def refused(expected, code, *words, folder=ROOT):
    done = subprocess.run([str(word) for word in words], cwd=folder, text=True, capture_output=True, timeout=60)
    said = (done.stdout + done.stderr).strip().splitlines()
    assert done.returncode == code and len(said) == 1 and expected in said[0], (words, done)


# As GoogleTest writes it.
REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1">
  <testsuite name="Segments" tests="2" failures="1">
    <testcase name="Grow" status="run" result="completed" classname="Segments" />
    <testcase name="Shrink" status="run" result="completed" classname="Segments">
      <failure message="a.cpp:7&#x0A;Expected: 1" type=""><![CDATA[a.cpp:7
Expected: 1]]></failure>
    </testcase>
  </testsuite>
</testsuites>
"""


def failures_are_told():
    sys.path.insert(0, str(ROOT / "tools"))
    import run_tests

    with tempfile.TemporaryDirectory(prefix="terrace-commands-") as folder:
        report = pathlib.Path(folder) / "test_memory.xml"
        report.write_text(REPORT)
        assert list(run_tests.failures_of(report)) == [("Segments.Shrink", "a.cpp:7\nExpected: 1")]
        assert run_tests.cases_of(report) == {"passed": 1, "failed": 1}
        report.write_text(REPORT[:200])  # of a program that crashed
        assert run_tests.cases_of(report) is None


def main():
    failures_are_told()
    run, test = ROOT / "run", ROOT / "test"
    refused("unknown argument 'trace.jsonl'", 2, run, "trace.jsonl")
    refused("--trace takes a value", 2, run, "--trace")
    refused("--trace missing.jsonl: no such file", 2, run, "--trace", "missing.jsonl")
    refused("--config missing.toml: no such file", 2, run, "--config=missing.toml")
    refused("--limit takes a number of requests, not 'ten'", 2, run, "--limit", "ten")
    with tempfile.TemporaryDirectory(prefix="terrace-commands-") as folder:
        (pathlib.Path(folder) / "trace.jsonl").touch()
        # The trace is found where the command is called, so that the next mistake is the one reported.
        refused("unknown argument '--faster'", 2, run, "--trace", "trace.jsonl", "--faster", folder=folder)
    refused("unknown option '--faster'", 2, test, "--faster")
    refused("no test program is named missing; there are: ", 1, sys.executable, ROOT / "tools/run_tests.py",
            "--build", sys.argv[1], "--check", "missing", "memory")
    helps = subprocess.run([ROOT / "tools/build_deb", "--help"], check=True, text=True, capture_output=True).stdout
    assert "tools/build_deb [--no-install] [FOLDER]" in helps, helps


if __name__ == "__main__":
    main()
