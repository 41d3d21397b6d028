#!/usr/bin/env python3
"""Lets PyTorch's wheel of the package index be imported without CUDA's libraries, which are gigabytes that a CPU never uses.

The wheel links to them, so the loader wants them and every symbol it binds. For each library that is not installed this makes
a small one that has the symbols; whatever calls one of them aborts. For tests only.
"""

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

OF_THE_SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp|util))\.so")
OF_CUDA = re.compile(r"p?nccl|nvrtc|nvshmem|nvml|nvtx|cu[A-Z]|cu(blas|dnn|fft|rand|solver|sparse)")
CODE = "#include <stdlib.h>\nstatic void __attribute__((used)) stand_in(void) { abort(); }\n"


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def dynamic_symbols(library):
    """(name, version or '') of those defined, and of those wanted."""
    defined, wanted = set(), set()
    for line in output_of("nm", "-D", library).splitlines():
        *_, kind, symbol = line.split()
        name, _, version = symbol.replace("@@", "@").partition("@")
        if kind == "U":
            wanted.add((name, version))
        elif kind not in "wv":
            defined.add(name)
    return defined, wanted


def library_of_version(library):
    """Which needed library each version of a symbol belongs to."""
    owner, current = {}, ""
    for line in output_of("readelf", "-VW", library).splitlines():
        if found := re.search(r"File: (\S+)", line):
            current = found[1]
        elif current and (found := re.search(r"Name: (\S+)\s+Flags", line)):
            owner[found[1]] = current
    return owner


def build(name, by_version, folder, scratch):
    aliases = sorted({symbol for symbols in by_version.values() for symbol in symbols})
    lines = "".join(f'__asm__(".globl {symbol}\\n.set {symbol}, stand_in");\n' for symbol in aliases)
    (scratch / "code.c").write_text(CODE + lines)
    versions = "".join(f"{version} {{ global: {'; '.join(sorted(symbols))}; }};\n"
                       for version, symbols in by_version.items() if version and symbols)
    (scratch / "versions").write_text(versions)
    script = [f"-Wl,--version-script={scratch / 'versions'}"] if versions else []
    output_of("gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", *script, "-o", folder / name, scratch / "code.c")


def main(site_packages):
    folder = Path(site_packages) / "torch/lib"  # where torch's own libraries look first
    own = sorted(folder.glob("*.so*"))
    installed = [path for path in Path(site_packages).glob("nvidia/**/*.so*") if "stubs" not in path.parts]
    there = {path.name for path in [*own, *installed]}
    defined, wanted, owner, needed = set(), set(), {}, set()
    for path in [*own, *installed]:
        has, wants = dynamic_symbols(path)
        defined |= has
        if path in own:
            wanted |= wants
            owner |= library_of_version(path)
            needed |= set(re.findall(r"NEEDED.*\[(.+)\]", output_of("readelf", "-dW", path)))
    absent = {name for name in needed - there if not OF_THE_SYSTEM.match(name)}
    symbols = {name: defaultdict(set) for name in sorted(absent)}
    for name, version in wanted:
        if name in defined:
            continue
        if owner.get(version) in symbols:
            symbols[owner[version]][version].add(name)
        elif not version and OF_CUDA.match(name) and absent:  # any library in scope will do
            symbols[min(absent)][""].add(name)
    with tempfile.TemporaryDirectory() as scratch:
        for name, by_version in symbols.items():
            build(name, by_version, folder, Path(scratch))
    print(f"{len(symbols)} libraries stand in for CUDA's")


if __name__ == "__main__":
    main(sys.argv[1])
