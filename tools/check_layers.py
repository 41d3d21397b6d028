#!/usr/bin/env python3
"""Checks that the tree keeps its own rules (docs/architecture.md).

- A room of src/ includes only the rooms and the libraries that its arrows allow. Headers of src/actors that call themselves
  pure reach neither CAF nor the runtime.
- Each room has a README.md, and each source file a test: one that is named after it, or that includes its header, the
  interface behind which it stands (a registry's policies are tested by one suite), or that of a part built on it.
- An await is a statement of its own with plain operands (src/runtime/task.hpp).
- With --headers FOLDER (a configured build): every header compiles alone.
Long files are warnings, the rest are errors. Prints one line for each finding.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES_MAX = 450

# Which rooms a room may include besides itself.
ROOMS = {
    "base": set(),
    "runtime": {"base"},
    "protocol": {"base"},
    "index": {"base"},
    "memory": {"base"},
    "policy": {"base"},
    "metrics": {"base"},
    "tier": {"base", "index", "memory", "policy"},
    "transfer": {"base", "index", "memory", "tier"},
    "storage": {"base", "index", "memory", "metrics", "tier", "transfer"},
    "remote": {"base", "index", "protocol"},
    "gpu": {"base", "index"},
    "group": {"base", "index", "metrics", "tier"},
    "connection": {"base", "group", "index", "memory", "metrics", "protocol", "tier"},
    "actors": {"base", "connection", "gpu", "group", "index", "memory", "metrics", "protocol", "remote", "runtime", "storage", "tier", "transfer"},
    "daemon": {"actors", "base", "gpu", "index", "metrics", "remote", "runtime"},
    "client": {"base", "gpu", "protocol"},
    "cli": {"base", "client", "policy", "storage"},
}
LIBRARIES = {
    "caf/": {"runtime", "actors", "daemon"},
    "liburing": {"runtime"},
    "toml++/": {"cli", "daemon"},
    "prometheus/": {"metrics"},
    "flatbuffers/": {"protocol", "client", "connection", "actors"},
    "CLI/": {"cli", "daemon"},
    "spdlog/": {"actors", "daemon", "runtime"},
    "nlohmann/": {"cli", "metrics"},
    "curl/": {"actors"},
    "openssl/": {"index", "cli", "metrics", "remote"},
    "xxhash.h": {"index", "storage", "cli"},
    "cuda": {"gpu"},
    "zmq.hpp": {"cli"},
    "zstd.h": {"remote"},
    "msgpack.hpp": {"cli"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def sources(*folders, suffixes=(".hpp", ".cpp")):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path


def included(path):
    return [name for _, name in INCLUDE.findall(path.read_text())]


def check_includes():
    for path in sources("src"):
        room = path.relative_to(ROOT / "src").parts[0]
        where = path.relative_to(ROOT)
        if room not in ROOMS:
            yield f"{where}: room {room} has no arrows in tools/check_layers.py"
            continue
        for name in included(path):
            target, _, rest = name.partition("/")
            if rest and target in ROOMS and target != room and target not in ROOMS[room]:
                yield f"{where}: {room} may not include {name}; it may include {sorted(ROOMS[room])}"
            for library, allowed in LIBRARIES.items():
                if name.startswith(library) and room not in allowed:
                    yield f"{where}: {room} may not include {name}; only {sorted(allowed)} may"


def check_pure_headers():
    """Headers of src/actors that open with a comment which says "Pure:" reach neither CAF nor the runtime."""
    for path in sources("src/actors", suffixes=(".hpp",)):
        opening = path.read_text().split("#pragma once")[0]
        if "// Pure:" not in opening:
            continue
        found, todo = {path}, [path]
        while todo:
            part = todo.pop()
            for name in included(part):
                if name.startswith(("caf/", "runtime/")):
                    yield f"{path.relative_to(ROOT)}: says that it is pure, but {part.relative_to(ROOT)} includes {name}"
                whole = ROOT / "src" / name
                if whole.is_file() and whole not in found:
                    found.add(whole)
                    todo.append(whole)


def check_companions():
    for room in sorted((ROOT / "src").iterdir()):
        if any(room.glob("*.[ch]pp")) and not (room / "README.md").exists():
            yield f"src/{room.name}: a room opens with a README.md of ten lines"
    tested = reached_by_tests()
    names = {test.name for test in sources("tests", suffixes=(".cpp", ".py"))}
    for path in sources("src", suffixes=(".cpp",)):
        # A program's main is run by its end-to-end tests.
        if path.stem == "main" or f"{path.stem}_test.cpp" in names or headers_behind(path) & tested:
            continue
        yield f"{path.relative_to(ROOT)}: no test includes its header, and none is named {path.stem}_test.cpp"


def reached_by_tests():
    """The headers that tests include, and those on which the parts behind these headers are built."""
    found = set()
    todo = [name for test in sources("tests", "bench") for name in included(test)]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        for part in (ROOT / "src" / name, (ROOT / "src" / name).with_suffix(".cpp")):
            if part.is_file():
                todo.extend(included(part))
    return found


def headers_behind(path):
    """The headers of its own room that a source includes, directly or through another of them."""
    room = path.relative_to(ROOT / "src").parts[0]
    found, todo = set(), [path]
    while todo:
        for name in included(todo.pop()):
            if name.startswith(f"{room}/") and name not in found and (ROOT / "src" / name).exists():
                found.add(name)
                todo.append(ROOT / "src" / name)
    return found


# GCC 12 destroys some temporaries of an await expression twice, or never: braced values, results of calls and conditional
# operators among its operands, and whatever else stands in the same full expression. So an await is a statement of its
# own, `auto answer = co_await ask<T>(self, whom, what);`, and its operands are names, members, what a name points to,
# literals, or std::move of one of these.
OPERAND = r"(?:std::move\([\w.]+\)|[*&]?[\w:]+(?:(?:\.|->)\w+)*|\"[^\"]*\")"
AWAIT = re.compile(r"(?:(?:const )?auto&? \w+ = |(?:\w+(?:\.|->))*\w+ = )?co_await (?:\w+\.)?[\w:]+(?:<[\w:<>, ]+>)?"
                   rf"(?:\((?:{OPERAND}(?:, {OPERAND})*)?\))?;")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def check_awaits():
    for path in sources("src", "tests"):
        text = path.read_text()
        if "co_await" not in text:
            continue
        text = COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)
        for found in re.finditer(r"\bco_await\b", text):
            begin = max(text.rfind(mark, 0, found.start()) for mark in ";{}") + 1
            end = text.find(";", found.end()) + 1
            statement = " ".join(text[begin:end].split()).replace("( ", "(")
            if not AWAIT.fullmatch(statement):
                line = text.count("\n", 0, found.start()) + 1
                yield (f"{path.relative_to(ROOT)}:{line}: an await is a statement of its own with plain operands "
                       f"(see OPERAND in tools/check_layers.py): {statement}")


def check_lengths():
    for path in sources("src", "tests", "bench"):
        lines = path.read_text().count("\n")
        if lines > LINES_MAX:
            yield f"{path.relative_to(ROOT)}: {lines} lines; more than {LINES_MAX} are more than one concept"


def header_commands(build):
    """The compiler's arguments for each room: those of one of its sources."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if ROOT / "src" not in path.parents:
            continue
        arguments = shlex.split(entry["command"])
        kept, skip = [], False
        for argument in arguments:
            if skip or argument in ("-MD", "-c") or argument == entry["file"]:
                skip = False
            elif argument in ("-MQ", "-MF", "-o"):
                skip = True
            else:
                kept.append(argument)
        commands.setdefault(path.relative_to(ROOT / "src").parts[0], (kept, entry["directory"]))
    return commands


def check_headers(build):
    commands = header_commands(build)
    # Of a room without a source of its own (headers alone), the arguments of one that may include it do.
    any_command = commands.get("actors") or next(iter(commands.values()))

    def compile_alone(header):
        room = header.relative_to(ROOT / "src").parts[0]
        arguments, folder = commands.get(room, any_command)
        done = subprocess.run([*arguments, "-fsyntax-only", "-x", "c++", "-"], cwd=folder, text=True,
                              input=f'#include "{header.relative_to(ROOT / "src")}"\n', capture_output=True)
        if done.returncode != 0:
            return f"{header.relative_to(ROOT)}: does not compile alone:\n{done.stderr.strip()[:2000]}"
        return None

    headers = set(sources("src", suffixes=(".hpp",)))
    # A header that another one includes before anything else compiles alone if that one does.
    proven = {ROOT / "src" / names[0] for names in map(included, headers) if names} & headers
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(compile_alone, sorted(headers - proven)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headers", metavar="FOLDER", type=pathlib.Path, help="compile each header alone")
    options = parser.parse_args()
    if options.headers:
        errors = list(check_headers(options.headers.resolve()))
    else:
        errors = [*check_includes(), *check_pure_headers(), *check_companions(), *check_awaits()]
        for line in check_lengths():
            print(f"warning: {line}")
    for line in errors:
        print(f"error: {line}")
    print(f"{len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
