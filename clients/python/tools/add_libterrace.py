"""Adds libterrace's sources to a source distribution, which has no repository around it."""

import os
import pathlib
import shutil

source = pathlib.Path(os.environ["MESON_SOURCE_ROOT"])
rooms = source.parent.parent / "src"
if not (source / "libterrace").exists():
    for room in ("base", "protocol", "client", "gpu"):
        shutil.copytree(rooms / room, pathlib.Path(os.environ["MESON_DIST_ROOT"]) / "libterrace" / room)
