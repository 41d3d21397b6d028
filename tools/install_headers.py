#!/usr/bin/env python3
"""Installs a header with the project's headers that it includes, and nothing else. meson calls it at `meson install`.

    tools/install_headers.py SOURCE_ROOT HEADER INCLUDE_DIR

`#include "base/error.hpp"` becomes `#include "terrace/base/error.hpp"` for the INCLUDE_DIR `include/terrace`, so that one
directory on the search path is enough.
"""

import os
import pathlib
import re
import sys

INCLUDE = re.compile(r'^(\s*#\s*include\s+)"([^"]+)"', re.MULTILINE)


def with_included(root, header):
    """Names of the header and of all it includes, relative to the root."""
    found, todo = set(), [header]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [included for _, included in INCLUDE.findall((root / name).read_text())]
    return sorted(found)


def main():
    root, header, include_dir = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    target = pathlib.Path(os.environ["MESON_INSTALL_DESTDIR_PREFIX"]) / include_dir
    for name in with_included(root, header):
        text = INCLUDE.sub(rf'\1"{include_dir.name}/\2"', (root / name).read_text())
        installed = target / name
        installed.parent.mkdir(parents=True, exist_ok=True)
        installed.write_text(text)
        installed.chmod(0o644)
        if "MESON_INSTALL_QUIET" not in os.environ:
            print(f"Installing {name} to {installed.parent}")


if __name__ == "__main__":
    main()
