"""Runs the test modules of a folder and writes a report of GoogleTest's kind: cases.py FOLDER REPORT [PATTERN]...

A pattern is a part of a test's name, or `--gtest_filter=MODULE.CLASS.TEST`, by which a case that failed is run again.
"""

from __future__ import annotations

import sys
import time
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path


class Result(unittest.TextTestResult):
    def __init__(self, *arguments, **settings) -> None:
        super().__init__(*arguments, **settings)
        self.cases: dict[str, xml.Element] = {}
        self._began = time.monotonic()

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.case(test)

    def stopTest(self, test: unittest.TestCase) -> None:
        """A case's time includes what was set up for its class."""
        super().stopTest(test)
        now = time.monotonic()
        self.case(test).set("time", f"{now - self._began:.3f}")
        self._began = now

    def case(self, test: unittest.TestCase) -> xml.Element:
        name = test.id()  # also the id of a failed setUpClass, which is not a test
        if name not in self.cases:
            group, _, last = name.rpartition(".")
            self.cases[name] = xml.Element("testcase", name=last, classname=group, status="run")
        return self.cases[name]

    def fail(self, test: unittest.TestCase, error) -> None:
        xml.SubElement(self.case(test), "failure", message=self._exc_info_to_string(error, test))

    def addError(self, test, error) -> None:
        super().addError(test, error)
        self.fail(test, error)

    def addFailure(self, test, error) -> None:
        super().addFailure(test, error)
        self.fail(test, error)

    def addSubTest(self, test, subtest, error) -> None:
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.fail(test, error)

    def addSkip(self, test, reason: str) -> None:
        super().addSkip(test, reason)
        xml.SubElement(self.case(test), "skipped", message=reason)

    def addUnexpectedSuccess(self, test) -> None:
        super().addUnexpectedSuccess(test)
        xml.SubElement(self.case(test), "failure", message="succeeded unexpectedly")


def main(folder: str, report: str, patterns: list[str]) -> int:
    sys.path.insert(0, folder)
    loader = unittest.TestLoader()
    if patterns:
        filters = [pattern.partition("--gtest_filter=") for pattern in patterns]
        loader.testNamePatterns = [f"*{part}*" if not is_filter else name for part, is_filter, name in filters]
    tests = loader.discover(folder, pattern="*_test.py")
    began = time.monotonic()
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(tests)
    root = xml.Element("testsuites")
    suite = xml.SubElement(root, "testsuite", name=Path(folder).name, time=f"{time.monotonic() - began:.3f}")
    suite.extend(result.cases.values())
    Path(report).parent.mkdir(parents=True, exist_ok=True)
    xml.ElementTree(root).write(report)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
