#!/usr/bin/env python3
"""Prints how large and how connected the code is, beside the bounds that it should keep (docs/architecture.md).

The bounds are those of a house of 17 rooms. The 18th, `remote`, came with the remote stores, and has one arrow more than the
house's bound left: docs/decisions/126 says why it is a room.

The figures are counted from the text: no compiler is asked. Public members of a class are its functions and variables that
a user of the class may name; overloads and templates count once each, and members of its bases do not count.
"""

import pathlib
import re
import sys
from collections import Counter, defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_layers import INCLUDE, ROOMS, ROOT, included, sources  # noqa: E402

SMALL = 30  # lines
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
CLASS = re.compile(r"\b(class|struct)\s+(\w+)(?:\s+final)?(?:\s*:[^;{(]*)?\s*\{")
DATA = re.compile(r"[\w>\]&*]\s+&?\*?(\w+)\s*(?:=|\{|\[|$)")
FUNCTION = re.compile(r"(~?\w+|operator\s*\S+?)\s*\($")


def plain(path):
    """The text without comments, and without what strings say."""
    return STRING.sub('""', COMMENT.sub("", path.read_text()))


def body_end(text, begin):
    """Where the brace that opens at `begin` closes."""
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def statements(body):
    """The declarations of a class's body; what stands in braces or in parentheses is left out."""
    one, depth = "", 0
    for at, sign in enumerate(body):
        if sign in "{(":
            if depth == 0:
                one += sign
            depth += 1
        elif sign in "})":
            depth -= 1
            if depth == 0 and sign == "}":
                if not body[at + 1 :].lstrip().startswith((";", ",", "{", ")")):
                    yield one
                    one = ""
        elif depth == 0:
            if sign == ";" or (sign == ":" and re.search(r"\b(public|private|protected)$", one.strip())):
                yield one + (":" if sign == ":" else "")
                one = ""
            else:
                one += sign


def public_members(kind, body):
    """Names that a user of the class may call or read."""
    names, public = Counter(), kind == "struct"
    for one in statements(body):
        one = " ".join(one.split())
        access = re.search(r"(public|private|protected):$", one)
        if access:
            public = access.group(1) == "public"
            continue
        if not public or not one or one.startswith(("using ", "friend ", "enum ", "class ", "struct ", "static_assert", "#")):
            continue
        call = re.match(r"(?:template ?<.*?> )?(?:[^(=]*?)(~?\w+|operator ?[^\s(]+) ?\(", one)
        data = DATA.search(one.split("=")[0].split("{")[0].strip() + " =")
        name = call.group(1) if call else data.group(1) if data else None
        if name:
            names[name] += 1
    return sum(names.values())


def classes():
    for path in sources("src", suffixes=(".hpp",)):
        text = plain(path)
        for found in CLASS.finditer(text):
            begin = found.end() - 1
            yield public_members(found.group(1), text[begin + 1 : body_end(text, begin)]), found.group(2), path


def one_user_headers():
    users = defaultdict(set)
    for path in sources("src"):
        for name in included(path):
            users[name].add(path.relative_to(ROOT / "src").as_posix())
    headers = [path.relative_to(ROOT / "src").as_posix() for path in sources("src", suffixes=(".hpp",))]
    single = [name for name in headers if len(users[name] - {name[:-3] + "cpp"}) <= 1]
    return len(single), len(headers)


def messages_of_loads():
    """The bounds that a test keeps: messages between actors for a load from disk, by prompt and under a lease."""
    text = (ROOT / "tests/simulation/load_messages_test.cpp").read_text()
    return [int(bound) for bound in re.findall(r"EXPECT_LE\(sent_by_actors\(lines\), (\d+)U\)", text)]


def main():
    paths = list(sources("src"))
    lines = [path.read_text().count("\n") for path in paths]
    members, name, where = max(classes(), key=lambda one: one[0])
    single, headers = one_user_headers()
    tiers = sum("tier_kind::" in plain(path) for path in paths)
    options = len(re.findall(r"^(?!FORMER)[A-Z]+_OPTION\(", (ROOT / "src/daemon/options.def").read_text(), re.MULTILINE))
    by_prompt, under_lease = messages_of_loads()
    rows = [
        ("rooms of src/", len(ROOMS), 18),
        ("arrows between them", sum(len(to) for to in ROOMS.values()), 63),
        ("files", len(paths), 800),
        ("lines", sum(lines), 84000),
        (f"files of {SMALL} lines or fewer", sum(count <= SMALL for count in lines), 80),
        (f"headers with one user, of {headers}", single, headers * 22 // 100),
        (f"public members of the largest class, {name}", members, 35),
        ("files that name a kind of tier", tiers, 12),
        ("options", options, 75),
        ("messages of a load from disk, under a lease", under_lease, 21),
        ("messages of a load from disk, by its prompt", by_prompt, 21),
    ]
    for what, count, most in rows:
        print(f"{what:58} {count:7,}  aim {most:7,}{'' if count <= most else '  over'}")


if __name__ == "__main__":
    main()
