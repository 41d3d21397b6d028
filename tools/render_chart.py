#!/usr/bin/env python3
"""Renders the Helm chart packaging/helm/terrace without Helm.

    tools/render_chart.py                              writes packaging/kubernetes/daemonset.yaml and sidecar.yaml
    tools/render_chart.py [--set mode=sidecar]... -    prints the manifests with these values

The chart's templates use only the part of Helm's language that is below: if, else and end; values; and the functions of
FUNCTIONS. Anything else is an error here, so that the manifests of this program are those of Helm.
"""

import argparse
import json
import pathlib
import re
import sys

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHART = ROOT / "packaging" / "helm" / "terrace"
MANIFESTS = {ROOT / "packaging" / "kubernetes" / f"{mode}.yaml": mode for mode in ("daemonset", "sidecar")}
# A dash beside the braces removes the white space on its side.
ACTION = re.compile(r"(?:\s*\{\{-|\{\{)\s+(.*?)\s+(?:-\}\}\s*|\}\})", re.DOTALL)
WORD = re.compile(r'"[^"]*"|[()|]|[^\s()|]+')


def indented(columns, text):
    return "\n".join(" " * int(columns) + line for line in text.split("\n"))


FUNCTIONS = {
    "eq": lambda one, other: one == other,
    "or": lambda *of: next((one for one in of if one), of[-1]),
    "toJson": lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")),
    "splitList": lambda between, text: text.split(between),
    "last": lambda values: values[-1],
    "nindent": lambda columns, text: "\n" + indented(columns, text),
    ".Files.Get": lambda name: (CHART / name).read_text(),
}


def value_of(word, scope):
    if word.startswith('"'):
        return word[1:-1]
    if word.isdigit():
        return int(word)
    if not word.startswith("."):
        raise ValueError(f"the renderer knows no function {word}; it knows {', '.join(FUNCTIONS)}")
    found = scope
    for name in word[1:].split("."):
        if name not in found:
            raise ValueError(f"{word}: there is no value {name}")
        found = found[name]
    return found


def call(words, scope):
    """Reads one call up to its end, a parenthesis or a pipe."""
    function = FUNCTIONS.get(words[0])
    if function:
        words.pop(0)
    values = []
    while words and words[0] not in (")", "|"):
        word = words.pop(0)
        if word == "(":
            values.append(pipeline(words, scope))
            words.pop(0)
        else:
            values.append(value_of(word, scope))
    return function, values


def pipeline(words, scope):
    result = []
    while True:
        function, values = call(words, scope)
        result = [function(*values, *result)] if function else values
        if len(result) != 1:
            raise ValueError(f"{result} is not one value")
        if not words or words[0] != "|":
            return result[0]
        words.pop(0)


def printed(value):
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def render(text, scope):
    """The text with its actions carried out."""
    out, at, shown = [], 0, [True]  # shown: of each open `if`, whether its present branch is printed
    for found in ACTION.finditer(text):
        action = found[1]
        if all(shown):
            out.append(text[at:found.start()])
        at = found.end()
        if action.startswith("if "):
            shown.append(bool(all(shown) and pipeline(WORD.findall(action[3:]), scope)))
        elif action == "else":
            shown[-1] = not shown[-1]
        elif action == "end":
            shown.pop()
        elif all(shown):
            out.append(printed(pipeline(WORD.findall(action), scope)))
    if shown != [True]:
        raise ValueError("an `if` has no `end`, or an `end` no `if`")
    return "".join(out) + text[at:]


def merged(values, changes):
    """The values, with those of a path such as ("host", "bytes") replaced."""
    result = json.loads(json.dumps(values))
    for path, value in changes.items():
        where = result
        for name in path[:-1]:
            where = where[name]
        if path[-1] not in where:
            raise ValueError(f"values.yaml has no {'.'.join(path)}")
        where[path[-1]] = value
    return result


def check(values):
    """As Helm does with the chart's schema. Exits with what is wrong."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    wrong = [(".".join(str(name) for name in one.absolute_path), one.schema.get("description", one.message))
             for one in jsonschema.Draft7Validator(schema).iter_errors(values)]
    if wrong:
        sys.exit("\n".join(f"{name}: {text}" for name, text in wrong))


def manifests(changes=None):
    """The chart's manifests as one YAML stream, with the values of values.yaml and these changes."""
    values = merged(yaml.safe_load((CHART / "values.yaml").read_text()), changes or {})
    scope = {"Values": values, "Release": {"Name": "terrace"}}
    check(values)
    return "".join("---\n" + render(path.read_text(), scope).strip() + "\n"
                   for path in sorted((CHART / "templates").glob("*.yaml")))


def manifest_file(mode):
    return ("# Made of packaging/helm/terrace by tools/render_chart.py; docs/kubernetes.md explains it.\n"
            + manifests({("mode",): mode}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a value of the chart, as YAML")
    parser.add_argument("to", nargs="?", choices=["-"], help="- prints instead of writing the files")
    options = parser.parse_args()
    if options.set and not options.to:
        parser.error("--set changes what is printed; add - behind it")
    if options.to:
        changes = {tuple(name.split(".")): yaml.safe_load(value)
                   for name, _, value in (one.partition("=") for one in options.set)}
        sys.stdout.write(manifests(changes))
        return
    for path, mode in MANIFESTS.items():
        path.write_text(manifest_file(mode))


if __name__ == "__main__":
    main()
