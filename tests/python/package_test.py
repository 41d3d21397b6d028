"""The package as a user installs it: its command, its README, its types."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import terrace
from daemon import PATIENCE, DaemonTest, chain_of
from terrace.__main__ import _duration, _size

CLIENT = Path(__file__).resolve().parents[2] / "clients/python"


class Package(DaemonTest):
    def run_python(self, *arguments: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], env={**os.environ, "TERRACE_SOCKET": self.server.socket}, input=input,
            capture_output=True, text=True, timeout=PATIENCE,
        )

    def test_it_has_the_daemons_version(self) -> None:
        self.assertEqual(terrace.__version__, self.daemon.daemon.version)

    def test_the_command_shows_the_daemons_status(self) -> None:
        shown = self.run_python("-m", "terrace", "status")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"host +ready")
        self.assertIn(self._testMethodName, shown.stdout)
        said = json.loads(self.run_python("-m", "terrace", "status", "--json").stdout)
        self.assertEqual(said["version"], self.daemon.daemon.version)
        self.assertEqual(said["groups"][0]["tiers"][0]["tier"], "host")
        self.assertEqual(said["groups"][0]["open_spaces"][0]["pools"][0]["name"], "kv")

    def test_its_units_are_those_of_the_command_terrace(self) -> None:
        self.store(chain_of(1, 3))
        shown = self.run_python("-m", "terrace", "status").stdout
        self.assertRegex(shown, r"host +ready +204 KiB +32\.0 MiB +3 ")
        self.assertRegex(shown, r"up (\d\.\d\d|\d\d\.\d) s\n")
        self.assertRegex(shown, rf"{self._testMethodName} .* 0 B\n")
        self.assertEqual([_size(nbytes) for nbytes in (0, 1023, 1024, 1536, 12_900_000_000, 1 << 60)],
                         ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "12.0 GiB", "1024 PiB"])
        self.assertEqual([_duration(seconds) for seconds in (1.5, 75, 200, 7500)],
                         ["1.50 s", "75.0 s", "3 min 20 s", "2 h 05 min"])

    def test_a_process_ends_while_a_daemon_thread_is_inside_a_call(self) -> None:
        program = """
import sys, threading, terrace
daemon = terrace.connect(sys.argv[1], timeout=60)
space = daemon.open_space(terrace.SpaceSpec("m", "bf16", "l", [terrace.Pool("kv", object_bytes=4096)]))
inside = threading.Event()
def work():
    while True:
        daemon.lookup(space, range(256))
        inside.set()
threading.Thread(target=work, daemon=True).start()
inside.wait()
"""
        for _ in range(5):
            done = self.run_python("-c", program, self.server.socket)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_its_exit_codes_are_those_of_the_command_terrace(self) -> None:
        status = ("-m", "terrace", "status")
        for words, code, text in ((("--socket", "/tmp/no-such-socket"), 3, "/tmp/no-such-socket"),
                                  (("--socket", "/" + "long" * 99), 2, "path"), (("--bogus",), 2, "--bogus")):
            shown = self.run_python(*status, *words)
            self.assertEqual((shown.returncode, shown.stdout), (code, ""), shown.stderr)
            self.assertIn(text, shown.stderr)
        line = [sys.executable, *status, "--socket", self.server.socket]
        with open("/dev/full", "w") as full:
            shown = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual((shown.returncode, shown.stderr),
                         (1, "python -m terrace: standard output cannot be written: No space left on device\n"))
        reads, writes = os.pipe()
        os.close(reads)
        shown = subprocess.run(line, stdout=writes, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        os.close(writes)
        self.assertEqual((shown.returncode, shown.stderr), (141, ""))

    def test_the_example_of_the_readme_prints_what_it_says(self) -> None:
        text = (CLIENT / "README.md").read_text()
        example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
        prints = re.search(r"It prints `(.*?)`", text)
        assert example and prints
        done = self.run_python("-", input=example[1])
        self.assertEqual((done.stdout, done.stderr), (prints[1] + "\n", ""))

    def test_status_and_policies_are_values(self) -> None:
        status = self.daemon.status(timeout=PATIENCE)
        (host,) = [tier for tier in status.groups[0].tiers if tier.tier == "host"]
        self.assertEqual((host.state, host.capacity_bytes), ("ready", self.host_bytes))
        self.assertGreater(status.workers, 0)
        before = self.daemon.set_policy("host", "fifo", timeout=PATIENCE)
        policies = self.daemon.policies(timeout=PATIENCE)
        self.assertEqual([tier.policy for tier in policies.tiers if tier.tier == "host"], ["fifo"])
        self.assertIn(before, policies.known)
        self.assertEqual(self.space.pools[0].name, "kv")
        self.assertEqual(len(self.space.fingerprint), 32)

    def test_the_stub_names_what_the_module_has(self) -> None:
        """mypy cannot look into a compiled module, so members and arguments are compared here."""
        from terrace import _libterrace

        stub = ast.parse((CLIENT / "terrace/_libterrace.pyi").read_text())
        classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"}
        bound = {name for name, value in vars(_libterrace).items() if isinstance(value, type)}
        self.assertEqual(set(classes), bound)
        for name, node in classes.items():
            members = {of.name: of for of in node.body if isinstance(of, ast.FunctionDef)}
            apart = {"__buffer__", "__init__", "__exit__"}  # slots, C++'s own members, functions with any arguments
            there = {member for member in vars(getattr(_libterrace, name)) if member[:2] != "__"}
            self.assertEqual({member for member in members if member[:2] != "__"}, there, name)
            for member, definition in members.items():
                value = inspect.getattr_static(getattr(_libterrace, name), member, None)
                if member in apart:
                    continue
                self.assertIsNotNone(value, f"{name}.{member}")
                if not hasattr(value, "__nb_signature__"):
                    continue  # a property
                (signature, *_), = value.__nb_signature__
                for argument in (*definition.args.args[1:], *definition.args.kwonlyargs):
                    self.assertRegex(signature, rf"\b{argument.arg}\b", f"{name}.{member}")

    def test_it_says_that_it_is_typed(self) -> None:
        assert terrace.__file__
        self.assertTrue((Path(terrace.__file__).parent / "py.typed").exists())


if __name__ == "__main__":
    unittest.main()
