#!/usr/bin/env python3
"""Checks that docs/flow-control.md says how each edge is kept.

Every row of its tables names a test that exists, in the column `test`; and where a table has a column `where`, files of
src/, at least one of which asserts the bound. Edges that the kernel or CAF bounds say so there instead. Its other cells,
which an operator reads, have at most 25 words together.
Prints one line for each finding.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/flow-control.md"
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
NAMED_TEST = re.compile(r"`([A-Z]\w*\.[A-Z]\w*)`")
NAMED_FILE = re.compile(r"`([\w/]+\.[ch]pp)`")
ASSERTION = re.compile(r"\bassert\(")
CHECKED = ("where", "test")
WORDS_MAX = 25
BOUNDED_ELSEWHERE = ("the kernel", "CAF", "no messages")


def tests():
    """The names of all tests, `Suite.Name`."""
    found = set()
    for path in (ROOT / "tests").rglob("*.cpp"):
        found.update(".".join(match) for match in TEST.findall(path.read_text()))
    return found


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(text):
    """Each row of the page's tables: its line's number, its first cell, and its cells by the table's header."""
    header = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = cells(line)
        elif not set(line) <= set("|-: "):
            yield number, header, cells(line)


def words(by_name):
    """How many words a reader of the row has to read."""
    return sum(any(letter.isalnum() for letter in word)
               for name, cell in by_name.items() if name not in CHECKED for word in cell.split())


def files_named(cell):
    """Those of src/ whose paths end with a name of the cell; None in place of a name that no file has."""
    for name in NAMED_FILE.findall(cell):
        found = [path for path in (ROOT / "src").rglob(pathlib.Path(name).name)
                 if ("/" + path.relative_to(ROOT).as_posix()).endswith("/" + name)]
        if not found:
            yield name, None
        for path in found:
            yield name, path


def findings(text, known):
    for number, header, row in rows(text):
        edge = row[0]
        if len(row) != len(header):
            yield number, f"'{edge}' has {len(row)} cells, its table {len(header)} columns"
            continue
        by_name = dict(zip(header, row))
        if words(by_name) > WORDS_MAX:
            yield number, f"'{edge}' has {words(by_name)} words; at most {WORDS_MAX}, the rest is prose below the table"
        named = NAMED_TEST.findall(by_name.get("test", ""))
        if not named:
            yield number, f"'{edge}' names no test"
        for test in named:
            if test not in known:
                yield number, f"'{edge}' names the test {test}, which does not exist"
        where = by_name.get("where")
        if where is None or where.startswith(BOUNDED_ELSEWHERE):
            continue
        asserts = False
        for name, path in files_named(where):
            if path is None:
                yield number, f"'{edge}' names the file {name}, which does not exist"
            else:
                asserts = asserts or bool(ASSERTION.search(path.read_text()))
        if not asserts:
            yield number, f"'{edge}': none of the files that it names asserts anything"


def main():
    text = PAGE.read_text()
    edges = sum(1 for _ in rows(text))
    errors = list(findings(text, tests()))
    for number, what in errors:
        print(f"docs/flow-control.md:{number}: {what}")
    print(f"{edges} rows, {len(errors)} errors")
    return 1 if errors or edges == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
