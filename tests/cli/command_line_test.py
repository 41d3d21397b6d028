#!/usr/bin/env python3
"""The command `terrace` as people and scripts use it: pipes, full disks, closed descriptors, mistyped words, terminals.

    command_line_test.py TERRACE TERRACED [TEST...]
"""

import contextlib
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from run_workload import Daemon  # noqa: E402

TERRACE, TERRACED = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
CONFIGURATION = '[host]\nbytes = "64MiB"\n[disk]\nenabled = false\n'
PATIENCE = 120  # seconds, after which a hang is a failure
OK, FAILED, USAGE, UNREACHABLE = 0, 1, 2, 3
READER_LEFT = 141  # as of a program that SIGPIPE ended
TRACE_LINE = '{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]}\n'


class CommandLine(unittest.TestCase):
    """One daemon for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="terrace-command-line-")))
        config = cls.folder / "terraced.toml"
        config.write_text(CONFIGURATION)
        cls.daemon = Daemon(TERRACED, config, cls.folder)
        cls.addClassCleanup(cls.daemon.notify.close)
        cls.addClassCleanup(cls.daemon.stop)
        if not cls.daemon.wait_until_ready():
            cls.daemon.show_log()
            raise AssertionError("the daemon does not serve")
        cls.environment = dict(os.environ, TERRACE_SOCKET=str(cls.daemon.socket_path))

    @classmethod
    def enterClassContext(cls, context):  # Python 3.11 has it, 3.9 has not
        entered = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        return entered

    def shell(self, line, **options):
        """Runs a line of bash in which `terrace` is the command under test."""
        return subprocess.run(["bash", "-c", line.replace("terrace ", f"{TERRACE} ")], text=True, capture_output=True,
                              env=self.environment, cwd=self.folder, timeout=PATIENCE, **options)

    def terrace(self, *words, **options):
        return subprocess.run([TERRACE, *map(str, words)], text=True, capture_output=True, env=self.environment,
                              cwd=self.folder, timeout=PATIENCE, **options)

    def expect(self, done, code, *texts):
        self.assertEqual(done.returncode, code, done)
        for text in texts:
            self.assertIn(text, done.stderr if code else done.stdout)
        if code:  # one line, behind the progress if there was any
            self.assertEqual(len([line for line in done.stderr.splitlines() if " %: " not in line]), 1, done.stderr)

    def put(self, text):
        (self.folder / "file").write_text(text)
        return self.terrace("put", "file").stdout.split()[0]


class Output(CommandLine):
    def test_reader_that_left_ends_every_command_quietly(self):
        (self.folder / "trace.jsonl").write_text(TRACE_LINE)
        self.put("an object, so that there are events")
        for command in ("status", "status --json", "events", "events --json", "top --interval 0.1", "clients", "--help",
                        "trace info trace.jsonl", "trace generate --requests 2000", "policies", "--version"):
            done = self.shell(f"terrace {command} | true; echo ${{PIPESTATUS[0]}}")
            # The reader may have gone before the first byte or after the last one.
            self.assertIn(int(done.stdout), (OK, READER_LEFT), (command, done))
            self.assertEqual(done.stderr, "", command)

    def test_a_command_that_goes_on_ends_when_its_reader_leaves(self):
        self.put("an object, so that there are events")
        for command in ("events --follow --json", "events --follow", "top --interval 0.1"):
            running = subprocess.Popen([TERRACE, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, env=self.environment)
            self.assertTrue(running.stdout.readline())
            running.stdout.close()
            self.assertEqual(running.wait(PATIENCE), READER_LEFT, command)
            self.assertEqual(running.stderr.read(), "", command)
            running.stderr.close()

    def test_output_that_cannot_be_written_is_a_failure(self):
        (self.folder / "trace.jsonl").write_text(TRACE_LINE)
        self.put("something")
        for command in ("status", "status --json", "trace generate --requests 5", "trace info trace.jsonl", "events",
                        "top --count 1 --interval 0.1", "clients", "leases", "policies", "--help", "--version",
                        "put file", "simulate trace.jsonl --capacity 1MiB"):
            self.expect(self.shell(f"terrace {command} > /dev/full"), FAILED,
                        "standard output cannot be written: No space left on device")
            self.expect(self.shell(f"terrace {command} >&-"), FAILED,
                        "standard output cannot be written: Bad file descriptor")
            self.assertEqual(self.shell(f"terrace {command} > /dev/full 2>&-").returncode, FAILED, command)

    def test_the_daemon_says_when_its_answer_cannot_be_written(self):
        for option in ("--version", "--print-config", "--check", "--help"):
            done = self.shell(f"{TERRACED} {option} > /dev/full")
            self.expect(done, FAILED, "terraced: standard output cannot be written: No space left on device")
            self.assertIn(self.shell(f"{TERRACED} {option} 2>&- >/dev/full").returncode, (FAILED,))

    def test_errors_that_nobody_can_read_keep_their_code(self):
        for command, code in (("status --socket /none", UNREACHABLE), ("bogus", USAGE), ("get zz -o x", USAGE),
                              (f"get {'0' * 64} -o x", FAILED), ("status --socket /none 0<&- >&-", UNREACHABLE)):
            for where in ("2>&-", "2>/dev/full"):
                self.assertEqual(self.shell(f"terrace {command} {where}").returncode, code, (command, where))

    def test_progress_that_nobody_can_read_stops_nothing(self):
        self.shell("terrace trace generate --requests 20 -o long.jsonl")
        for where in ("2>&-", "2>/dev/full"):
            done = self.shell(f"terrace replay long.jsonl --limit 20 --json {where}")
            self.assertEqual(done.returncode, OK, done)
            self.assertEqual(json.loads(done.stdout)["wrong_bytes"], 0)

    def test_closed_descriptors_are_not_taken_for_the_socket(self):
        done = self.shell("terrace status --json <&- 2>&-")
        self.assertEqual(done.returncode, OK)
        self.assertIn("version", json.loads(done.stdout))


class GetWritesInto(CommandLine):
    def test_a_device(self):
        key = self.put("hello\n")
        for device in ("/dev/null", "/dev/full"):
            before = os.stat(device)
            done = self.terrace("get", key, "-o", device)
            after = os.stat(device)
            self.assertEqual((before.st_ino, before.st_mode), (after.st_ino, after.st_mode))
            self.assertFalse(pathlib.Path(device + ".part").exists())
            if device == "/dev/full":
                self.expect(done, FAILED, "/dev/full: cannot be written: No space left on device")
            else:
                self.expect(done, OK)

    def test_a_fifo(self):
        key = self.put("hello\n")
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        read = []
        reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
        reader.start()
        self.expect(self.terrace("get", key, "-o", fifo), OK)
        reader.join()
        self.assertEqual(read, ["hello\n"])
        self.assertTrue(stat.S_ISFIFO(fifo.stat().st_mode))

    def test_the_file_behind_a_link(self):
        key = self.put("hello\n")
        (self.folder / "target").write_text("before")
        for link, target in (("link", "target"), ("dangling", "new")):
            (self.folder / link).symlink_to(target)
            self.expect(self.terrace("get", key, "-o", link), OK)
            self.assertTrue((self.folder / link).is_symlink())
            self.assertEqual((self.folder / target).read_text(), "hello\n")
        (self.folder / "one").write_text("before")
        os.link(self.folder / "one", self.folder / "other")
        self.expect(self.terrace("get", key, "-o", "one"), OK)
        self.assertEqual((self.folder / "other").read_text(), "hello\n")

    def test_standard_output(self):
        key = self.put("hello\n")
        done = self.terrace("get", key, "-o", "-")
        self.assertEqual((done.returncode, done.stdout), (OK, "hello\n"))
        self.assertIn("SHA-256 matches", done.stderr)
        self.assertEqual(self.shell(f"terrace get {key} -o - | cat").stdout, "hello\n")
        done = self.shell(f"terrace get {key} -o /dev/stdout > redirected")
        self.assertEqual((done.returncode, (self.folder / "redirected").read_text()), (OK, "hello\n"))
        self.expect(self.shell(f"terrace get {key} -o - > /dev/full"), FAILED,
                    "standard output cannot be written: No space left on device")

    def test_a_file_that_is_complete_or_not_there(self):
        key = self.put("hello\n")
        (self.folder / "kept").write_text("before")
        os.chmod(self.folder / "kept", 0o600)
        self.expect(self.terrace("get", "0" * 64, "-o", "kept"), FAILED)
        self.assertEqual((self.folder / "kept").read_text(), "before")
        self.expect(self.terrace("get", key, "-o", "kept"), OK)
        self.assertEqual((self.folder / "kept").read_text(), "hello\n")
        self.assertEqual(stat.S_IMODE((self.folder / "kept").stat().st_mode), 0o600)
        self.expect(self.terrace("get", key, "-o", "missing/file"), FAILED,
                    "missing/file: cannot be written: No such file or directory")
        self.expect(self.terrace("get", key, "-o", "."), FAILED, ".: cannot be written: Is a directory")


class Numbers(CommandLine):
    def test_counts_below_zero_or_beyond_bounds_are_refused(self):
        (self.folder / "trace.jsonl").write_text(TRACE_LINE)
        for words, text in ((["trace", "generate", "--requests", "-1"], "--requests: expected a whole number of at least 0, found \"-1\""),
                            (["trace", "generate", "--requests", "99999999999999999999"], "--requests: expected a number of at most 18446744073709551615"),
                            (["trace", "generate", "--requests", "9999999999999"], "--requests: expected at most 10,000,000, found 9,999,999,999,999"),
                            (["trace", "generate", "--requests", "1e3"], "--requests: expected a whole number of at least 0, found \"1e3\""),
                            (["trace", "generate", "--seed", "-1"], "--seed: expected a whole number"),
                            (["trace", "generate", "--think-seconds", "nan"], "--think-seconds"),
                            (["trace", "info", "trace.jsonl", "--limit", "-1"], "--limit: expected a whole number"),
                            (["simulate", "trace.jsonl", "--limit", "-1"], "--limit: expected a whole number"),
                            (["simulate", "trace.jsonl", "--jobs", "-1"], "--jobs"),
                            (["replay", "trace.jsonl", "--clients", "-1"], "--clients"),
                            (["top", "--count", "-1"], "--count: expected a whole number"),
                            (["leases", "--limit", "-1"], "--limit"),
                            (["events", "--block-size", "-1"], "--block-size"),
                            (["status", "--timeout", "nan"], "--timeout")):
            self.expect(self.terrace(*words), USAGE, text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
