#!/usr/bin/env python3
"""Mistakes in the command lines of ./run, ./test and tools/build_deb are reported at once, before anything is installed or
built, in one line that names the mistake; of a case that failed, ./test shows what failed in it; and what failed is run
again, so that flaky tests are told from broken ones.

    commands_test.py BUILD_FOLDER TEST_SOMETIMES
"""

import json
import os
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


class TestedProject:
    """A project whose tests are GoogleTest cases that fail sometimes, and scripts that do, run by tools/run_tests.py."""

    def __init__(self, folder, cases, scripts, parts):
        self.folder = folder
        (folder / "state").mkdir()
        tests = ["project('sometimes')", "state = {'SOMETIMES': meson.source_root() / 'state'}"]
        # In parts, as the end-to-end tests are.
        for part in range(parts):
            tests.append(f"test('cases-{part}', find_program('{pathlib.Path(sys.argv[2]).resolve()}'), args: ['--gtest_filter={cases}'],"
                         f" protocol: 'gtest', env: state + {{'GTEST_TOTAL_SHARDS': '{parts}', 'GTEST_SHARD_INDEX': '{part}'}})")
        for name, text in scripts:
            limit = 1 if name == "hangs" else 60  # seconds
            (folder / f"{name}.py").write_text(f"#!{sys.executable}\n{text}")
            (folder / f"{name}.py").chmod(0o755)
            tests.append(f"test('{name}', find_program('{name}.py'), env: state, timeout: {limit})")
        (folder / "meson.build").write_text("\n".join(tests) + "\n")
        subprocess.run(["meson", "setup", folder / "build", folder], check=True, capture_output=True, timeout=300)

    def run(self, known="", arguments=()):
        """Exit code, lines, and the list of flaky tests."""
        (self.folder / "known").write_text(known)
        flaky = self.folder / "flaky.json"
        done = subprocess.run([sys.executable, ROOT / "tools/run_tests.py", "--build", self.folder / "build", "--flaky",
                               flaky, "--known-flaky", self.folder / "known", *arguments], text=True, capture_output=True, timeout=300)
        return done.returncode, done.stdout.splitlines(), json.loads(flaky.read_text()) if flaky.exists() else None


FAILS_ONCE = """
import os, pathlib, sys
folder = pathlib.Path(os.environ["SOMETIMES"])
with open(folder / "order", "a") as order:
    order.write("script\\n")
print("the script says why")
mark = folder / "script"
seen = mark.exists()
mark.touch()
sys.exit(0 if seen else 3)
"""


def project(cases, scripts, expected_code, last_line, flaky, known="", parts=2):
    with tempfile.TemporaryDirectory(prefix="terrace-commands-") as folder:
        made = TestedProject(pathlib.Path(folder), cases, scripts, parts)
        code, lines, listed = made.run(known)
        assert (code, lines[-1]) == (expected_code, last_line), "\n".join(lines)
        found = None if listed is None else sorted((test["program"], test["name"]) for test in listed)
        assert found == flaky, listed
        order = made.folder / "state/order"
        return lines, listed, order.read_text().split() if order.exists() else []


def flaky_tests_are_told():
    # Each of them: what came again alone begins after everything else has ended, and one test at a time.
    lines, listed, order = project("Sometimes.Passes:*Number/1", [("script", FAILS_ONCE)], 0, "3 passed, 0 failed",
                                   [("cases-1", "Sometimes/FailsOnce.Number/1"), ("script", "script")])
    assert order[2:] in (["once1"] * 2 + ["script"] * 2, ["script"] * 2 + ["once1"] * 2), order
    case, script = listed
    assert case["build"] == script["build"] == "build", listed
    assert "number 1 says why" in case["log"] and "[ RUN      ] Sometimes.Passes" not in case["log"], case
    assert "the script says why" in script["log"], script
    first = next(number for number, line in enumerate(lines) if line.startswith("flaky: cases-1 Sometimes/FailsOnce.Number/1 "))
    assert any("number 1 says why" in line for line in lines[first:]), lines

    # A program that crashed says nothing of its other cases: all are counted when it is run again.
    project("Sometimes.Passes:*Crashes*", [], 0, "2 passed, 0 failed", [("cases-0", "cases-0")], parts=1)


def broken_tests_fail():
    scripts = [("always", "raise SystemExit(1)"), ("hangs", "import signal\nsignal.pause()\n")]
    lines, _, _ = project("Sometimes.Fails*:*Number/1", scripts, 1, "1 passed, 4 failed",
                          [("cases-0", "Sometimes/FailsOnce.Number/1")])
    assert any("as always" in line for line in lines), lines
    assert "always failed again alone:" in lines and "hangs failed again alone:" in lines, lines

    import run_tests

    record = {"name": "sometimes / always"}  # which nobody runs again when so many have failed
    assert run_tests.judge([(record, {"failed": 1}, None)] * 21, None, "build") == []


def too_many_flaky_tests_fail():
    four = [(f"cases-{number % 2}", f"Sometimes/FailsOnce.Number/{number}") for number in (0, 2, 1, 3)]
    lines, _, _ = project("*Number*", [], 1, "4 passed, 1 failed", four)
    assert lines[-2] == "4 tests are flaky, and at most 3 may be", lines


def a_known_flaky_test_fails():
    known = "# a comment\n2026-11-28 cases Sometimes/FailsOnce.Number/1 it reads what is not there yet\n"
    lines, _, _ = project("*Number/1", [], 1, "1 passed, 1 failed", [("cases-0", "Sometimes/FailsOnce.Number/1")], known)
    assert lines[-2].startswith("flaky again: cases-0 Sometimes/FailsOnce.Number/1 "), lines
    lines, _, _ = project("*Number/1", [], 1, "0 passed, 1 failed", None, "cases Sometimes.Fails\n")
    assert "known:1: expected `YYYY-MM-DD PROGRAM TEST what is known`, got `cases Sometimes.Fails`" in lines[-2], lines


def a_list_has_all_builds():
    import flaky_tests

    test = {"name": "A.B", "program": "e2e-1", "log": "why"}
    with tempfile.TemporaryDirectory(prefix="terrace-commands-") as folder:
        path = pathlib.Path(folder) / "ci/flaky.json"
        assert flaky_tests.read(path) == []
        for build in "build", "build-address", "build-address", "build-thread":
            flaky_tests.write(path, build, [dict(test, build=build)])
        assert [each["build"] for each in flaky_tests.read(path)] == ["build", "build-address", "build-thread"]
        command = [sys.executable, ROOT / "tools/flaky_tests.py", path]
        done = subprocess.run(command, text=True, capture_output=True, timeout=60)
        assert done.returncode == 0 and "flaky: e2e-1 A.B (build-thread) failed" in done.stdout, done
        flaky_tests.write(path, "build-fuzz", [dict(test, build="build-fuzz")])
        done = subprocess.run(command, text=True, capture_output=True, timeout=60)
        assert done.returncode == 1 and "4 tests are flaky" in done.stdout, done
    assert flaky_tests.again([dict(test, build="build")], {("e2e", "A.B")})
    flaky_tests.known()  # that of the tree can be read


def a_program_is_left_out():
    scripts = [("always", "raise SystemExit(1)"), ("passes", "")]
    with tempfile.TemporaryDirectory(prefix="terrace-commands-") as folder:
        made = TestedProject(pathlib.Path(folder), "Sometimes.Passes", scripts, 1)
        code, lines, _ = made.run(arguments=["--without", "always"])
        assert (code, lines[-1]) == (0, "2 passed, 0 failed"), "\n".join(lines)
        code, lines, _ = made.run(arguments=["--without", "misspelt"])
        assert code == 1 and "no test program is named misspelt; there are: always cases-0 passes" in lines, "\n".join(lines)


PYTHON_CASES = """
import unittest

class Some(unittest.TestCase):
    def test_one(self):
        pass

    def test_one_more(self):
        self.fail("not asked for")
"""


def a_python_case_is_run_again():
    """By its name in the report, as a case of GoogleTest is."""
    with tempfile.TemporaryDirectory(prefix="terrace-commands-") as folder:
        (pathlib.Path(folder) / "some_test.py").write_text(PYTHON_CASES)
        report = pathlib.Path(folder) / "report.xml"
        done = subprocess.run([sys.executable, ROOT / "tests/python/cases.py", folder, report, "--gtest_filter=some_test.Some.test_one"],
                              text=True, capture_output=True)
        import run_tests

        assert (done.returncode, dict(run_tests.cases_of(report))) == (0, {"passed": 1}), done.stderr


def a_long_build_says_how_far_it_is():
    import run_ninja

    with tempfile.TemporaryDirectory(prefix="terrace-commands-") as folder:
        go_on = pathlib.Path(folder) / "go on"
        os.mkfifo(go_on)
        said = []

        def report(done, total):
            said.append((done, total))
            if said[-2:] == [(1, 20), (1, 20)] and len(set(said[:-2])) < 2:
                go_on.write_text("x\n")  # the file takes no longer

        ninja = f"echo '[1/20] CXX a'; read x < '{go_on}'; echo '[2/20] CXX b'; echo '[20/20] LINK'; exit 3"
        code = run_ninja.elsewhere(["bash", "-c", ninja], os.environ, report, patience=0.01)
        assert code == 3 and said.count((1, 20)) >= 2 and (2, 20) in said, (code, said)


def main():
    failures_are_told()
    a_long_build_says_how_far_it_is()
    a_program_is_left_out()
    a_python_case_is_run_again()
    flaky_tests_are_told()
    broken_tests_fail()
    too_many_flaky_tests_fail()
    a_known_flaky_test_fails()
    a_list_has_all_builds()
    run, test = ROOT / "run", ROOT / "test"
    refused("--engine takes vllm, not 'sglang'", 2, ROOT / "run", "--engine", "sglang")
    refused("--engine goes with --serve and --no-install alone", 2, ROOT / "run", "--engine", "vllm", "--remote")
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
    refused("--without needs the name of a test program, such as 'engines'", 2, test, "--without")
    refused("no test program is named missing; there are: ", 1, sys.executable, ROOT / "tools/run_tests.py",
            "--build", sys.argv[1], "--check", "missing", "memory")
    helps = subprocess.run([ROOT / "tools/build_deb", "--help"], check=True, text=True, capture_output=True).stdout
    assert "tools/build_deb [--no-install] [FOLDER]" in helps, helps


if __name__ == "__main__":
    main()
