#!/usr/bin/env python3
"""tools/build_wheel: a wheel that is installed where no compiler is, and talks to a daemon there.

    wheel_test.py TERRACED [TEST...]
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from run_workload import Daemon  # noqa: E402

TERRACED = str(pathlib.Path(sys.argv[1]).resolve())
CONFIGURATION = '[host]\nbytes = "64MiB"\n[disk]\nbytes = 0\n'
NEWEST_C_LIBRARY = 35  # minor version, of Ubuntu 22.04, which engines' images are made from
STORE_AND_FIND = """
import sys, terrace
daemon = terrace.connect(sys.argv[1], timeout=60)
space = daemon.open_space(terrace.SpaceSpec(model="m", dtype="u8", layout="l", chunk_tokens=16, pools=[terrace.Pool("kv", object_bytes=4096)]))
memory = terrace.Memory(4096)
memoryview(memory)[:] = b"k" * 4096
with daemon.register_region(memory) as region:
    daemon.store(space, terrace.Prefix.of_digests([b"d" * 32]), region, [(0, 4096)])
print("found", daemon.lookup(space, terrace.Prefix.of_digests([b"d" * 32])).found_chunks)
"""


def run(*words, **options):
    return subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="terrace-wheel-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        done = run(ROOT / "tools/build_wheel", "--output", cls.folder / "wheels")
        if done.returncode == 77:
            raise unittest.SkipTest(done.stdout[-500:])
        if done.returncode != 0:
            raise AssertionError(done.stdout)
        cls.said = done.stdout
        (cls.wheel,) = (cls.folder / "wheels").glob("*.whl")

    def test_auditwheel_finds_it_fit_for_the_images_of_engines(self):
        minor = min(int(found) for found in re.findall(r"manylinux_2_(\d+)_", self.wheel.name))
        self.assertLessEqual(minor, NEWEST_C_LIBRARY, self.said)
        self.assertIn(self.wheel.name, self.said)

    def test_it_needs_no_library_beside_those_of_the_compilers(self):
        run("python3", "-m", "zipfile", "-e", self.wheel, self.folder / "content")
        (module,) = (self.folder / "content/terrace").glob("_libterrace*.so")
        needed = set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", module).stdout))
        self.assertTrue(needed)
        self.assertEqual({name for name in needed if not re.match(r"(lib(c|m|stdc\+\+|gcc_s)|ld-linux.*)\.so", name)}, set())

    def test_it_is_installed_without_a_compiler_and_finds_what_it_stores(self):
        environment = {"PATH": str(self.folder / "nothing"), "HOME": str(self.folder)}
        python = self.folder / "venv/bin/python"
        self.assertEqual(run(sys.executable, "-m", "venv", self.folder / "venv").returncode, 0)
        done = run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", self.wheel, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        config = self.folder / "terraced.toml"
        config.write_text(CONFIGURATION)
        daemon = Daemon(TERRACED, config, self.folder)
        self.addCleanup(daemon.notify.close)
        self.addCleanup(daemon.stop)
        self.assertTrue(daemon.wait_until_ready())
        done = run(python, "-c", STORE_AND_FIND, daemon.socket_path, env=environment)
        self.assertEqual((done.returncode, done.stdout), (0, "found 1\n"))

    def test_the_module_keeps_to_the_stable_abi(self):
        """A wheel for Python 3.12 and later has none of these macros; one for 3.11, which is built here, would have them."""
        used = {(path.name, name) for path in (ROOT / "clients/python/src").glob("*.[ch]pp")
                for name in re.findall(r"\bPy[A-Z][A-Za-z]+_[A-Z][A-Z_]+(?=\()", path.read_text())}
        self.assertEqual(used, set())

    def test_an_interpreter_that_is_not_there_is_named(self):
        done = run(ROOT / "tools/build_wheel", "--python", "python9.9")
        self.assertEqual(done.returncode, 2)
        self.assertIn("found no python9.9", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
