#!/usr/bin/env python3
"""Checks that comments begin with their subject.

Counts the comments of src/, bench/ and clients/ (`//` in C++, docstrings and `#:` in Python) that begin with Of, What, For,
The same, Those, It or To, where a reader looks for a subject, and fails if these are more than 5 % of all comments. A
comment is a block of consecutive comment lines; a comment behind code counts once, with the lines that continue it.
Prints the share and the files with the most findings, or each finding with --all, of the tree or of the paths given.
"""

import argparse
import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "bench", "clients")
PERCENT_MAX = 5
WORST_FILES = 15

SUBJECTLESS = re.compile(r"(?:of|what|for|the same|those|it|to)\b", re.IGNORECASE)
# The literals and comments of C++. A quote between digits separates them and opens nothing.
CPP_TOKEN = re.compile(r"""
    (?P<raw>R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)")
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<digits>\b\d[\w']*)
  | (?P<character>'(?:\\.|[^'\\\n])*')
  | (?P<block>/\*.*?\*/)
  | (?P<line>//[^\n]*)""", re.DOTALL | re.VERBOSE)
# Comments to a tool rather than to a reader.
DIRECTIVE = re.compile(r"NOLINT|clang-format |IWYU|pylint|type:|noqa")


def line_comments(lines):
    """Yields the first line's number and the words of each comment, from (number, column, trails code, text) of each line.

    A line that is a comment only continues the comment that begins in the same column of the line above.
    """
    number_before, column_before = None, None
    begun, words = None, []
    for number, column, trails, text in lines:
        goes_on = (not trails and number_before is not None and number == number_before + 1
                   and column == column_before)
        if not goes_on:
            if words:
                yield begun, words
            begun, words = number, []
        words.extend(text.split())
        number_before, column_before = number, column
    if words:
        yield begun, words


def cpp_comments(text):
    lines = []
    for match in CPP_TOKEN.finditer(text):
        if not match["line"] and not match["block"]:
            continue
        begin = text.rfind("\n", 0, match.start()) + 1
        body = re.sub(r"^(?://[/!]?<?|/\*+)|\*/$", "", match[0])
        if DIRECTIVE.match(body.strip()):
            continue
        trails = bool(text[begin:match.start()].strip())
        lines.append((text.count("\n", 0, begin) + 1, match.start() - begin, trails, body))
    return line_comments(lines)


def python_comments(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node)
            if docstring:
                yield node.body[0].lineno, docstring.split()
    lines = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.string.startswith("#:"):
            lines.append((token.start[0], token.start[1], bool(token.line[:token.start[1]].strip()), token.string[2:]))
    yield from line_comments(lines)


def comments(path):
    text = path.read_text()
    return python_comments(text) if path.suffix in (".py", ".pyi") else cpp_comments(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="print each finding")
    parser.add_argument("paths", nargs="*", default=FOLDERS, help="files and folders (default: src bench clients)")
    arguments = parser.parse_args()

    suffixes = {".hpp", ".cpp", ".cu", ".def", ".fbs", ".py", ".pyi"}
    tracked = subprocess.run(["git", "ls-files", "-z", "--", *arguments.paths], cwd=ROOT, capture_output=True, text=True,
                             check=True).stdout.split("\0")
    total = 0
    found = Counter()
    for name in tracked:
        path = ROOT / name
        if path.suffix not in suffixes or not path.is_file():
            continue
        for line, words in comments(path):
            total += 1
            beginning = " ".join(words[:8]).lstrip("`\"'(*")
            if SUBJECTLESS.match(beginning):
                found[name] += 1
                if arguments.all:
                    print(f"{name}:{line}: {beginning}")
    if total == 0:
        print("no comments found")
        return 1
    for name, count in found.most_common(WORST_FILES):
        print(f"{name}: {count}")
    findings = sum(found.values())
    print(f"{findings} of {total} comments begin without their subject: {100 * findings / total:.1f} %, at most {PERCENT_MAX} %")
    return 0 if 100 * findings <= PERCENT_MAX * total else 1


if __name__ == "__main__":
    sys.exit(main())
