#!/usr/bin/env python3
"""Checks that what the pages of the project name exists.

- A relative link leads to a file or folder, and its anchor to a heading of that page.
- A name of a source in backticks, such as `tier/tier_list.hpp`, is a file or folder: seen from the repository, from src/,
  from src/actors/, from clients/python/ or from the page's folder. A name without a folder is that of some file. So is a
  name such as docs/man anywhere in the text. `*` and `{a,b}` stand for at least one file each. Names with NAME in them
  are examples.
- The table of rooms in docs/architecture.md has the arrows of tools/check_layers.py.

- A source that a comment names exists, by its last name.

Pages are README.md, docs/, and the other Markdown files of the repository. Prints one line for each finding.
"""

import functools
import itertools
import os
import pathlib
import re
import subprocess
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("hpp", "cpp", "cu", "py", "pyi", "md", "toml", "fbs", "def", "patch", "dot", "svg", "yml", "service")
FOLDERS = ("src", "tests", "bench", "tools", "docs", "config", "clients", "packaging")
BASES = ("", "src", "src/actors", "clients/python")
FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*?)\s*#*$")
NAME = re.compile(r"(?<![\w./~$-])[\w.*{][\w./*{},-]*")
WHOLE_NAME = re.compile(r"(?<![\w./~$*{-])(?:" + "|".join(FOLDERS) + r")/[\w./*{},-]*")
ROOM = re.compile(r"^\| `(\w+)` \|.*\| ([\w, ]*)\|$")
# Files that users or libraries have.
OF_OTHERS = {"example.cpp", "copy.md", "tl/expected.hpp"}


def files():
    """The files of the repository, as git has them or would have them."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    return {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")
            if path.is_file() and not path.relative_to(ROOT).parts[0].startswith(("build", "."))}


class Tree:
    def __init__(self, names):
        self.names = set(names)
        self.paths = set(names)  # files and folders
        for name in names:
            self.paths.update(parent.as_posix() for parent in pathlib.PurePosixPath(name).parents)
        self.last = {pathlib.PurePosixPath(name).name for name in names}

    def has(self, path):
        if "*" in path:
            pattern = re.compile(re.escape(path).replace(r"\*", "[^/]*"))
            return any(pattern.fullmatch(known) for known in self.paths)
        return path in self.paths

    def has_last(self, name):
        pattern = re.compile(re.escape(name).replace(r"\*", "[^/]*"))
        return any(pattern.fullmatch(known) for known in self.last)


def alternatives(name):
    """Each name that `a{b,c}d` stands for."""
    parts = re.split(r"\{([^{}]*)\}", name)
    return ["".join(chosen) for chosen in
            itertools.product(*(part.split(",") if i % 2 else [part] for i, part in enumerate(parts)))]


def prose(text):
    """The page's lines outside of code blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


@functools.lru_cache(maxsize=None)
def anchors(path):
    """Of each heading, as GitHub makes them."""
    found = {}
    for _, line in prose(path.read_text()):
        heading = HEADING.match(line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            times = found.get(slug, 0)
            found[slug] = times + 1
            if times:
                found[f"{slug}-{times}"] = 1
    return found


def links(text):
    """The targets of a page's links, whose text may go over the ends of lines, with the numbers of their lines."""
    lines = list(prose(text))
    joined = "\n".join(CODE.sub("code", line) for _, line in lines)
    for found in LINK.finditer(joined):
        yield lines[joined.count("\n", 0, found.end(1))][0], found[1]


def normal(base, name):
    return os.path.normpath(os.path.join(base, name))


def link_finding(page, target, tree):
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = target.partition("#")
    where = normal(page.parent, name) if name else page.as_posix()
    if not tree.has(where):
        return f"links to {target}, which does not exist"
    if anchor and (not where.endswith(".md") or anchor not in anchors(ROOT / where)):
        return f"links to {target}, but {where} has no such heading"
    return None


def is_source(name):
    suffix = name.rsplit(".", 1)[-1]
    if name.startswith(("build", ".")) or "NAME" in name or "://" in name:
        return False
    if name.split("/")[0] in FOLDERS and "/" in name:
        return True
    return "." in name.strip(".") and suffix in SOURCES and name not in OF_OTHERS


def exists(page, name, tree):
    if any(tree.has(normal(base, name)) for base in (page.parent, *BASES)):
        return True
    return "/" not in name and tree.has_last(name)


def name_findings(page, names, tree):
    for found in names:
        name = found.strip(",.")
        for one in alternatives(name):
            if is_source(one) and not exists(page, one.rstrip("/"), tree):
                yield f"names {one}, which does not exist"


def findings(page, text, tree):
    """Of one page, whose path is relative to the repository."""
    for number, target in links(text):
        found = link_finding(page, target, tree)
        if found:
            yield number, found
    for number, line in prose(text):
        names = [name for code in CODE.findall(line) for name in NAME.findall(code)]
        names += WHOLE_NAME.findall(CODE.sub("code", LINK.sub("link", line)))
        for found in name_findings(page, names, tree):
            yield number, found


def room_findings(text):
    """What the table of rooms says of their arrows, compared with what tools/check_layers.py allows."""
    listed = {}
    for number, line in prose(text):
        row = ROOM.match(line)
        if row:
            listed[row[1]] = (number, {room for room in row[2].replace(" ", "").split(",") if room})
    for room, allowed in check_layers.ROOMS.items():
        number, arrows = listed.pop(room, (0, None))
        if arrows != allowed:
            yield number, f"says of room {room} that it may include {arrows}; it may include {sorted(allowed)}"
    for room, (number, _) in listed.items():
        yield number, f"has a room {room} that tools/check_layers.py does not know"


COMMENT = re.compile(r"(?:^|\s)//[/!<]*(.*)$")
COMMENTED_NAME = re.compile(r"(?<![\w.*<-])((?:\w+/)*\w+\.(?:hpp|cpp))(?!\w)")


def comment_findings(text, tree):
    """Names of sources in the comments of a source."""
    for number, line in enumerate(text.splitlines(), 1):
        comment = COMMENT.search(line)
        for name in COMMENTED_NAME.findall(comment[1]) if comment else []:
            if name not in OF_OTHERS and not tree.has_last(pathlib.PurePosixPath(name).name):
                yield number, f"a comment names {name}, which does not exist"
            elif "/" in name and not any(tree.has(normal(base, name)) for base in ("", "src", "tests")):
                yield number, f"a comment names {name}, which lies elsewhere"


def main():
    tree = Tree(files())
    pages = sorted(name for name in tree.names if name.endswith(".md"))
    errors = 0
    for name in pages:
        text = (ROOT / name).read_text()
        found = list(findings(pathlib.PurePosixPath(name), text, tree))
        if name == "docs/architecture.md":
            found += room_findings(text)
        for number, what in found:
            print(f"{name}:{number}: {what}")
        errors += len(found)
    for name in sorted(name for name in tree.names if re.fullmatch(r"(src|tests|bench)/.*\.[hc]pp", name)):
        for number, what in comment_findings((ROOT / name).read_text(), tree):
            print(f"{name}:{number}: {what}")
            errors += 1
    print(f"{len(pages)} pages, {errors} errors")
    return 1 if errors or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
