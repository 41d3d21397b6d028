#!/usr/bin/env python3
"""Fills in a manual page: synopsis, options and commands come from the program's own --help.

    tools/make_man.py TEMPLATE PROGRAM OUTPUT [--command "COMMAND OF THE PROGRAM"] --set NAME=VALUE...

In the template, @synopsis@, @options@ and @commands@ stand for what --help says, and @NAME@ for a value. With --command the
page is about that command: @command@ is the page's name, @page@ its title, @about@ its line of help, and @arguments@ and
@examples@ what its help has of them. A line of --help that this script does not understand is an error, so a page is
complete or is not built.
"""

import argparse
import pathlib
import re
import subprocess
import sys

HEADINGS = {"Options:": "options", "Positionals:": "positionals", "Subcommands:": "subcommands",
            "Examples:": "examples"}
# "  -o,--output TEXT            File to write"; the text may stand in the next line, indented further.
ENTRY = re.compile(r"^  (\S.*?)(?:\s{2,}(\S.*))?$")
CONTINUED = re.compile(r"^ {20,}(\S.*)$")
PROGRAM_WIDE = "The options --socket, --timeout and --json "


class Help:
    """What one `--help` says."""

    def __init__(self, program, command):
        self.name = " ".join([program.name, *command])
        text = subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout
        self.about, self.usage = "", ""
        self.entries = {name: [] for name in HEADINGS.values()}
        section = None
        for line in text.splitlines():
            if line.startswith("Usage: "):
                words = line.removeprefix("Usage: ").split()
                kept = (word for word in words if word.startswith("[") or word.isupper())
                self.usage = re.sub(r"\(\d*x\)", "", " ".join(kept))
            elif line in HEADINGS:
                section = HEADINGS[line]
            elif line.startswith(PROGRAM_WIDE):
                break  # the end of the help of groups and of the program; the page's own sections say it
            elif not line.strip():
                continue
            elif section is None:
                self.about = f"{self.about} {line}".strip()
            elif section == "examples":
                self.entries[section].append(line.strip())
            elif CONTINUED.match(line) and self.entries[section]:
                name, about = self.entries[section].pop()
                self.entries[section].append((name, f"{about} {line.strip()}".strip()))
            elif ENTRY.match(line):
                name, about = ENTRY.match(line).groups()
                self.entries[section].append((name, about or ""))
            else:
                sys.exit(f"{self.name} --help: not understood: {line!r}")
        if not self.about or not self.entries["options"]:
            sys.exit(f"{self.name} --help: no description or no options")


def roff(text):
    """Plain text, which must not be taken for requests or hyphens."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", escaped, flags=re.MULTILINE)


def listed(entries):
    lines = []
    for name, about in entries:
        option, _, value = name.partition(" ")
        lines.append(f".TP\n\\fB{roff(option)}\\fR {roff(value)}\n{roff(about) or '&'}")
    return "\n".join(lines)


def options_of(found):
    return [entry for entry in found.entries["options"] if not entry[0].startswith("-h,")]


def commands_of(program, command=()):
    """The help of every command that has no commands below it, in the program's order."""
    found = Help(program, command)
    if not found.entries["subcommands"]:
        return [found]
    return [leaf for name, _ in found.entries["subcommands"] for leaf in commands_of(program, (*command, name))]


def examples_of(found):
    return [".nf", *(roff(line) for line in found.entries["examples"]), ".fi"]


def command_text(found):
    lines = [f".SS {roff(found.name)} {roff(found.usage)}", roff(found.about) + "."]
    lines += [listed(found.entries["positionals"]), listed(options_of(found))]
    if found.entries["examples"]:
        lines += [".PP", "Examples:", ".PP", *examples_of(found)]
    return "\n".join(line for line in lines if line)


def command_values(found):
    """What the page of one command says."""
    arguments = listed(found.entries["positionals"])
    return {"command": roff(found.name.replace(" ", "-")), "page": found.name.replace(" ", "-").upper(), "about": roff(found.about),
            "arguments": f".SH ARGUMENTS\n{arguments}" if arguments else ".\\\"",
            "examples": "\n".join([".SH EXAMPLES", *examples_of(found)]) if found.entries["examples"] else ".\\\""}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("template", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--command", default="")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    program = options.program.resolve()
    found = Help(program, options.command.split())
    values = dict(pair.split("=", 1) for pair in options.set)
    values["synopsis"] = f".B {roff(found.name)}\n{roff(found.usage)}"
    values["options"] = listed(options_of(found))
    values |= command_values(found)
    if not options.command:
        values["commands"] = "\n".join(map(command_text, commands_of(program)))
    text = options.template.read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    if left := re.search(r"@\w+@", text):
        sys.exit(f"{options.template}: {left[0]} stands for nothing")
    options.output.write_text(text)


if __name__ == "__main__":
    main()
