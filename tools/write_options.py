#!/usr/bin/env python3
"""Writes what src/daemon/options.def says into the files that users read.

    tools/write_options.py [--build build]

config/terraced.toml is written whole; of docs/configuration.md and CHANGELOG.md the table below the heading of each
section. `terraced` of the build folder prints them, so build it first. tests/daemon compares the files with it.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def printed(program, option):
    return subprocess.run([program, option], check=True, capture_output=True, text=True).stdout


def replace_table(text, heading, table, path):
    """The first table below the heading becomes `table`."""
    pattern = rf"(^## {re.escape(heading)}\n(?:(?!\||## ).*\n)*)(?:\|.*\n)+"
    text, count = re.subn(pattern, lambda found: found.group(1) + table, text, count=1, flags=re.MULTILINE)
    if count != 1:
        sys.exit(f'error: {path}: expected the heading "## {heading}" with a table below it')
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    program = ROOT / parser.parse_args().build / "src/daemon/terraced"
    if not program.is_file():
        sys.exit(f"error: {program} does not exist: build src/daemon/terraced first")
    (ROOT / "config/terraced.toml").write_text(printed(program, "--print-config"))
    texts = {name: (ROOT / name).read_text() for name in ("docs/configuration.md", "CHANGELOG.md")}
    for heading, table in re.findall(r"^## (.+)\n\n((?:\|.*\n)+)", printed(program, "--print-reference"), re.MULTILINE):
        name = "docs/configuration.md" if heading.startswith("[") else "CHANGELOG.md"
        texts[name] = replace_table(texts[name], heading, table, name)
    for name, text in texts.items():
        (ROOT / name).write_text(text)


if __name__ == "__main__":
    main()
