#!/usr/bin/env python3
"""The command `terrace` as people and scripts use it: pipes, full disks, closed descriptors, mistyped words, terminals.

    command_line_test.py TERRACE TERRACED [TEST...]
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from run_workload import Daemon  # noqa: E402

TERRACE, TERRACED = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
CONFIGURATION = '[host]\nbytes = "64MiB"\n[disk]\nbytes = 0\n'
PATIENCE = 120  # seconds, after which a hang is a failure
OK, FAILED, USAGE, UNREACHABLE = 0, 1, 2, 3
READER_LEFT = 141  # as of a program that SIGPIPE ended
TRACE_LINE = '{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1]}\n'


class CommandLine(unittest.TestCase):
    """One daemon for all tests of a class."""

    configuration = CONFIGURATION

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="terrace-command-line-")))
        config = cls.folder / "terraced.toml"
        config.write_text(cls.configuration)
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

    def commands(self, *above):
        text = self.terrace(*above, "--help").stdout
        for line in text.partition("Subcommands:")[2].partition("\n\n")[0].splitlines():
            if line.strip():
                below = (*above, line.split()[0])
                yield from list(self.commands(*below)) or [" ".join(below)]

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
        config = self.folder / "checked.toml"  # with nothing to warn of
        config.write_text(f'[[listen]]\npath = "{self.folder}/other.sock"\n[disk]\nbytes = 0\n[metrics]\naddress = ""\n')
        for option in ("--version", "--print-config", f"--check --config {config}", "--help"):
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


class Log(unittest.TestCase):
    def serves(self, stderr):
        """The codes of `terrace status` beside a daemon that logs every message there."""
        with tempfile.TemporaryDirectory(prefix="terrace-log-") as folder:
            path = os.path.join(folder, "socket")
            notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            notify.bind(os.path.join(folder, "notify"))
            notify.settimeout(PATIENCE)
            config = pathlib.Path(folder, "terraced.toml")
            config.write_text(CONFIGURATION + '[daemon]\nlog_level = "trace"\n[metrics]\naddress = ""\n')
            daemon = subprocess.Popen([TERRACED, "--config", config, "--socket", path, "--state-dir", folder],
                                      stderr=stderr, env=dict(os.environ, NOTIFY_SOCKET=os.path.join(folder, "notify")))
            while b"READY=1" not in notify.recv(4096):
                pass
            notify.close()
            for _ in range(40):
                done = subprocess.run([TERRACE, "status", "--socket", path], capture_output=True, timeout=PATIENCE)
                yield done.returncode
            daemon.terminate()
            yield daemon.wait(PATIENCE)

    def test_a_pipe_that_nobody_reads_stops_nothing_and_says_what_is_missing(self):
        reads, writes = os.pipe()
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
        codes = self.serves(writes)
        said = b""
        for number, code in enumerate(codes):
            self.assertEqual(code, OK, number)
            if number == 20:  # the reader is back
                os.set_blocking(reads, False)
                said += os.read(reads, 1 << 20)
            elif number > 20:
                with contextlib.suppress(BlockingIOError):
                    said += os.read(reads, 1 << 20)
        os.close(writes)
        os.close(reads)
        self.assertRegex(said, rb"\n\S+ \S+ warning [\d,]+ lines of the log are missing here: nobody read in time\n")

    def test_a_socket_that_nobody_reads_stops_nothing(self):
        here, there = socket.socketpair()
        there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.assertEqual(set(self.serves(there)), {OK})
        here.close()
        there.close()


class PromptsAsText(CommandLine):
    def explain(self, *words, **environment):
        space = ("--model", "m", "--dtype", "u8", "--layout", "l", "--pool", "kv:4KiB")
        return subprocess.run([TERRACE, "explain", *space, *map(str, words)], text=True, capture_output=True,
                              env={**self.environment, **environment}, cwd=self.folder, timeout=PATIENCE)

    def test_a_text_needs_a_tokenizer_and_python(self):
        (self.folder / "prompt.txt").write_text("hello")
        self.expect(self.explain("--text", "prompt.txt"), USAGE, "--tokenizer")
        self.expect(self.explain("--tokenizer", "folder"), USAGE, "--text")
        self.expect(self.explain("--text", "prompt.txt", "--tokens", "1", "--tokenizer", "folder"), USAGE, "--t")
        self.expect(self.explain("--text", "prompt.txt", "--tokenizer", "folder", PATH=str(self.folder)), FAILED,
                    "python3 cannot be started: No such file or directory; install it, or give --tokens")

    def test_explain_without_a_prompt_names_all_that_it_takes(self):
        self.expect(self.terrace("explain"), USAGE, "expected --tokens, --digests, --text or --lookup (see --help)")
        self.expect(self.terrace("lookup"), USAGE, "expected --tokens, --digests or --text (see --help)")

    def test_what_python_lacks_is_said_in_one_line(self):
        tools = self.folder / "tools"
        tools.mkdir()
        # Without its site-packages, so without the package.
        (tools / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
        (tools / "python3").chmod(0o755)
        done = self.explain("--text", "prompt.txt", "--tokenizer", "folder", PATH=f"{tools}:{os.environ['PATH']}")
        self.expect(done, USAGE, "the Python package tokenizers is missing: python3 -m pip install tokenizers")


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


class Words(CommandLine):
    def test_mistyped_words_get_a_suggestion(self):
        for words, text in ((["stauts"], 'expected a command, found "stauts"; did you mean "status"?'),
                            (["trace", "genrate"], 'found "genrate"; did you mean "generate"?'),
                            (["generate"], 'found "generate"; did you mean "trace generate"?'),
                            (["frobnicate"], 'expected a command (status, '),
                            (["help", "stauts"], 'did you mean "status"?'),
                            (["status", "--jsno"], 'unknown option "--jsno"; did you mean "--json"?'),
                            (["replay", "--client=3", "x"], 'unknown option "--client"; did you mean "--clients"?'),
                            (["--sokcet", "x", "status"], 'unknown option "--sokcet"'),
                            (["status", "now"], 'unexpected argument "now"'),
                            (["completion", "tcsh"], "bash"),
                            (["replay", "x", "--chunk-tokens", "99999999999"], '--chunk-tokens: expected a smaller number, found "99999999999"')):
            self.expect(self.terrace(*words), USAGE, text)
        done = subprocess.run([TERRACED, "--confg", "x"], text=True, capture_output=True, timeout=PATIENCE)
        self.expect(done, USAGE, 'terraced: unknown option "--confg"; did you mean "--config"?')
        for word, said in (("version", 'did you mean "--version"?'), ("help", 'did you mean "--help"?'),
                           ("status", "commands are those of the program terrace")):
            done = subprocess.run([TERRACED, word], text=True, capture_output=True, timeout=PATIENCE)
            self.expect(done, USAGE, f'terraced: expected options only, found "{word}"; {said}')

    def test_help_and_version(self):
        self.assertEqual(self.terrace("help").stdout, self.terrace("--help").stdout)
        self.assertEqual(self.terrace("help", "trace", "generate").stdout, self.terrace("trace", "generate", "--help").stdout)
        self.assertEqual(self.terrace("help", "trace").stdout, self.terrace("trace", "--help").stdout)
        self.assertEqual(self.terrace("version").stdout, self.terrace("--version").stdout)
        self.assertIn("version", json.loads(self.terrace("version", "--json").stdout))

    def test_help_is_written_for_people(self):
        for command in self.commands():
            text = self.terrace(*command.split(), "--help").stdout
            self.assertNotRegex(text, r"UINT|INT in|FLOAT|TEXT:|REQUIRED|Env:|NONNEGATIVE|Excludes:|\{(true|false)\}", command)
            for line in text.split("Examples:")[0].splitlines():
                self.assertLessEqual(len(line), 100, line)
        for group in "lease", "trace", "disk", "remote":
            with self.subTest(group=group):
                examples = self.terrace("help", group).stdout.split("Examples:")[1].strip().splitlines()
                self.assertTrue(examples and all(line.strip().startswith(f"terrace {group} ") for line in examples
                                                 if line.strip().startswith("terrace")), examples)
        self.assertIn("(1 to 256; default 1)", " ".join(self.terrace("replay", "--help").stdout.split()))


class Completion(CommandLine):
    def completed(self, *words):
        script = ('source <("$TERRACE" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { echo "<files>"; };'
                  ' _terrace; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", "terrace", *words], text=True, capture_output=True,
                              env=dict(os.environ, TERRACE=TERRACE), timeout=PATIENCE)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash(self):
        self.assertEqual(self.completed("sta"), ["status"])
        self.assertEqual(self.completed("trace", ""), ["generate", "info", "convert"])
        self.assertEqual(self.completed("trace", "gen"), ["generate"])
        self.assertEqual(self.completed("replay", "--mo"), ["--mode"])
        self.assertEqual(self.completed("replay", "--mode", "d"), ["daemon"])
        self.assertEqual(self.completed("replay", "--clients", "4", "--mode", ""), ["auto", "mapped", "daemon"])
        self.assertEqual(self.completed("put", ""), ["<files>"])
        self.assertEqual(self.completed("status", "--socket", ""), ["<files>"])
        self.assertIn("--arrivals", self.completed("trace", "generate", "--"))
        self.assertEqual(self.completed("completion", ""), ["bash", "zsh", "fish"])

    def test_scripts_name_every_command_and_option(self):
        commands = list(self.commands())
        self.assertIn("disk resize", commands)
        for shell in "bash", "zsh", "fish":
            script = self.terrace("completion", shell).stdout
            for command in commands:
                self.assertIn(command, script)
                for option in set(re.findall(r"^  (?:-\w,)?--([a-z-]+)", self.terrace(*command.split(), "--help").stdout, re.M)):
                    self.assertIn(f" -l {option} " if shell == "fish" else f"--{option}", script)
            if path := shutil.which(shell):
                checked = subprocess.run([path, "-n", "/dev/stdin"], input=script, text=True, capture_output=True)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""), shell)


class Traces(CommandLine):
    def info(self, text, *words):
        (self.folder / "trace.jsonl").write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.terrace("trace", "info", "trace.jsonl", "--json", *words)

    def test_blocks_of_other_sizes(self):
        lines = ('{"timestamp": 500, "input_length": 40, "output_length": 9, "hash_ids": [4, 9, 2]}\n'
                 '{"timestamp": 61250, "input_length": 70, "output_length": 9, "hash_ids": [4, 9, 3, 5, 1]}\n')
        self.expect(self.info(lines), USAGE, "trace.jsonl:1: expected 1 hash_ids for an input_length of 40 (one per 512 tokens), found 3; "
                    "for blocks of 16 tokens add --block-tokens 16")
        facts = json.loads(self.info(lines, "--block-tokens", "16").stdout)
        self.assertEqual((facts["block_tokens"], facts["blocks"], facts["distinct_blocks"]), (16, 6, 4))
        self.assertEqual(facts["infinite_cache_hit_ratio"], 2 * 16 / 110)
        simulated = json.loads(self.terrace("simulate", "trace.jsonl", "--block-tokens", "16", "--chunk-tokens", "16", "--policies",
                                            "lru", "--capacity", "1MiB", "--json").stdout)
        self.assertEqual(simulated["infinite_cache_hit_ratio"], facts["infinite_cache_hit_ratio"])
        replayed = json.loads(self.terrace("replay", "trace.jsonl", "--block-tokens", "16", "--chunk-tokens", "16", "--json").stdout)
        self.assertEqual((replayed["hit_tokens"], replayed["wrong_bytes"]), (32, 0))
        self.expect(self.terrace("replay", "trace.jsonl", "--block-tokens", "16", "--chunk-tokens", "24"), USAGE,
                    "--chunk-tokens: expected a multiple of 16")

    def test_timestamps_in_seconds(self):
        lines = "".join('{"timestamp": %s, "input_length": 512, "output_length": 5, "hash_ids": [0]}\n' % at for at in (0.2, 0.4, 0.9))
        self.expect(self.info(lines), USAGE, 'expected "timestamp" to be whole milliseconds, found 0.2: add --timestamps seconds')
        self.assertEqual(json.loads(self.info(lines, "--timestamps", "seconds").stdout)["seconds"], 0.7)
        self.assertEqual(json.loads(self.info(lines, "--timestamps", "milliseconds").stdout)["seconds"], 0)
        self.assertEqual(json.loads(self.info(TRACE_LINE.replace(": 0,", ": 7,") + TRACE_LINE.replace(": 0,", ": 9.0,"),
                                              "--timestamps", "seconds").stdout)["seconds"], 2)

    def test_other_formats_are_told_what_is_expected(self):
        for text, said in (("TIMESTAMP,ContextTokens,GeneratedTokens\n", "is not JSON"), ('{"text": "summarise"}\n', "the key \"timestamp\""),
                           (f"[{TRACE_LINE.strip()}]\n", "found an array"), ('"text"\n', "found \"text\"")):
            self.expect(self.info(text), USAGE, said, "a trace has Mooncake's format, one JSON object a line", "docs/simulate.md")
        self.expect(self.info(b"\x28\xb5\x2f\xfd\0\0\n"), USAGE, "compressed with zstd: decompress it first")
        self.expect(self.info("\ufeff" + TRACE_LINE), OK)

    def test_ids_of_blocks_are_counted_as_a_replay_treats_them(self):
        # The last request begins like the second one, and goes on with ids of the first one.
        lines = "".join('{"timestamp": %d, "input_length": %d, "output_length": 1, "hash_ids": %s}\n' % (at, 512 * len(ids), ids)
                        for at, ids in ((0, [1, 2, 3]), (1, [4, 5]), (2, [4, 2, 3])))
        facts = json.loads(self.info(lines).stdout)
        simulated = json.loads(self.terrace("simulate", "trace.jsonl", "--policies", "lru", "--capacity", "64MiB", "--json").stdout)
        self.assertEqual((facts["infinite_cache_hit_ratio"], facts["contradictory_ids"]), (1 / 8, 1))
        self.assertEqual(simulated["infinite_cache_hit_ratio"], 1 / 8)


SPACE = ["--model", "test", "--dtype", "u8", "--layout", "file", "--pool", "piece:1MiB", "--chunk-tokens", "1",
         "--hash-block-tokens", "1", "--algorithm", "sha256"]


class Counts(CommandLine):
    configuration = ('[host]\nbytes = "64MiB"\n[disk]\nbytes = "16MiB"\n'
                     '[shadow]\npolicies = ["lru"]\ncapacity_percents = [100]\n')
    WRONG = re.compile(r"(?<![\w.,])1 (?!(?:us|ms|ns|is|has|was)\b)[a-z]+s\b")  # "1 objects"

    def test_one_of_anything_is_not_a_plural(self):
        (self.folder / "one.jsonl").write_text(TRACE_LINE)
        (self.folder / "config.json").write_text(json.dumps({
            "model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 64,
            "hidden_size": 64, "torch_dtype": "bfloat16"}))
        key = self.put("hello\n")
        number = next(space["space"] for group in json.loads(self.terrace("status", "--json").stdout)["groups"]
                      for space in group["open_spaces"] + group["idle_spaces"] if space["model"] == "terrace-files")
        prompt = ["--space", number, "--digests", key]
        volume = self.folder / "state/terrace.extents"
        for words in (["put", "file"], ["status"], ["clients"], ["policies"], ["leases"], ["sessions"], ["quota"], ["lookup", *prompt],
                      ["explain", *prompt], ["move", "--to", "disk", *prompt], ["pin", *prompt], ["leases"], ["unpin", *prompt],
                      ["evict", *prompt], ["put", "file"], ["clear", "--space", number, "--yes"],
                      ["trace", "info", "one.jsonl"], ["trace", "generate", "--requests", 1, "-o", "made.jsonl"],
                      ["simulate", "one.jsonl", "--policies", "lru", "--capacity", "64MiB"],
                      ["replay", "one.jsonl", "--clients", 1, "--bytes-per-token", 64],
                      ["size", "config.json", "--tokens", 1, "--users", 1], ["bench", "--objects", 1, "--digests", 1],
                      ["check"], ["top", "--count", 1]):
            self.has_no_plural(words)
        self.daemon.stop()
        for words in (["disk", "inspect", volume], ["disk", "verify", volume]):
            self.has_no_plural(words)

    def has_no_plural(self, words):
        done = self.terrace(*words)
        self.assertEqual(done.returncode, OK, (words, done))
        self.assertNotRegex(done.stdout + done.stderr, self.WRONG, words)


class Spaces(CommandLine):
    def spaces(self):
        group = json.loads(self.terrace("status", "--json").stdout)["groups"][0]
        return {space["space"]: space for space in group["open_spaces"] + group["idle_spaces"]}

    def test_status_lists_spaces_that_nobody_has_open(self):
        self.put("hello\n")
        space, = (one for one in self.spaces().values() if one["model"] == "terrace-files")
        self.assertEqual((space["dtype"], space["layout"], space["revision"], space["chunk_tokens"], space["salted"]),
                         ("u8", "file", "", 1, False))
        host, = space["tiers"]
        self.assertEqual((host["tier"], host["objects"]), ("host", 1))
        self.assertGreaterEqual(host["bytes"], 1 << 20)
        text = self.terrace("status").stdout
        self.assertRegex(text, rf"(?m)^ +{space['space']} +terrace-files .*u8 .*file .*1\.\d+ MiB")
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_hit_ratios_are_also_in_tokens(self):
        key = self.put("hello\n")
        self.terrace("get", key, "-o", "copy")
        group = json.loads(self.terrace("status", "--json").stdout)["groups"][0]
        self.assertGreaterEqual(group["tiers"][0]["hit_tokens"], 1)
        self.assertGreaterEqual(group["asked_tokens"], group["tiers"][0]["hit_tokens"])
        self.assertRegex(self.terrace("status").stdout, r"hit tokens")

    def test_a_space_is_named_by_its_number(self):
        key = self.put("to be evicted")
        number = next(one["space"] for one in self.spaces().values() if one["model"] == "terrace-files")
        prompt = ["--space", number, "--digests", key]
        found = json.loads(self.terrace("lookup", *prompt, "--json").stdout)
        self.assertEqual(found["found_chunks"], 1)
        self.expect(self.terrace("pin", *prompt), OK, "pinned 1 of 1 chunk: ")
        self.expect(self.terrace("unpin", *prompt), OK, "is unpinned")
        self.expect(self.terrace("evict", *prompt), OK, "1 object,")
        cleared = self.put("to be cleared")
        self.expect(self.terrace("clear", "--space", number), OK, "cleared")
        self.assertEqual(self.terrace("get", key, "-o", "x").returncode, FAILED)
        # A space that has nothing left is not listed, and still says why.
        self.assertNotIn(number, self.spaces())
        self.expect(self.terrace("explain", "--space", number, "--digests", cleared), OK, "0 of 1 chunk can be loaded", "cleared")
        self.expect(self.terrace("clear", "--space", number, *SPACE), USAGE, "--space")
        self.expect(self.terrace("lookup", "--digests", key), USAGE, "expected either --space, or --model")

    def test_a_filter_that_matches_nothing_lists_what_there_is(self):
        self.put("something")
        for words in (["lookup", "--digests", "00" * 32], ["clear"], ["evict", "--digests", "00" * 32], ["pin", "--digests", "00" * 32]):
            self.expect(self.terrace(*words, *SPACE), FAILED, "no space has these fields", "terrace-files")
            self.expect(self.terrace(*words, "--space", "4000000"), FAILED, "no space has the number 4000000", "terrace-files")
        self.assertNotIn("test", [space["model"] for space in self.spaces().values()])


class FirstAnswers(CommandLine):
    def test_a_lookup_that_nobody_has_made_cannot_be_explained(self):
        for name in "last", "7":
            self.expect(self.terrace("explain", "--lookup", name), FAILED, "no client has looked up anything under a lease")
        self.put("hello\n")  # without a lease
        self.expect(self.terrace("explain", "--lookup", "last"), FAILED, "no client has looked up anything under a lease")

    def test_a_file_that_does_not_fit_is_told(self):
        (self.folder / "large").write_bytes(os.urandom(80 << 20))
        done = self.terrace("put", "large")
        self.expect(done, FAILED, "large: of 81 pieces the first ")
        self.assertRegex(done.stdout, r"^[0-9a-f]{64}  large \(80.0 MiB, 81 pieces stored, 0 already present\)")
        key = done.stdout.split()[0]
        self.assertEqual(self.terrace("get", key, "-o", "copy").returncode, FAILED)
        told = self.terrace("put", "large", "--json")
        self.assertEqual(told.returncode, FAILED, told)
        self.assertLess(json.loads(told.stdout)["kept_pieces"], 81)


class Terminal(CommandLine):
    """A command on a terminal of its own."""

    def on_terminal(self, *words, answer=b"", expect=b""):
        """Writes `answer` once the command has shown `expect`; returns its code, what it showed, and what it left of the terminal."""
        ours, its = pty.openpty()
        before = termios.tcgetattr(its)
        running = subprocess.Popen([TERRACE, *map(str, words)], stdin=its, stdout=its, stderr=its, env=self.environment)
        shown = b""
        while expect not in shown:
            ready, _, _ = select.select([ours], [], [], PATIENCE)
            self.assertTrue(ready, shown)
            shown += os.read(ours, 65536)
        os.write(ours, answer)
        code = running.wait(PATIENCE)
        while select.select([ours], [], [], 0)[0]:
            shown += os.read(ours, 65536)
        same = termios.tcgetattr(its) == before
        os.close(ours)
        os.close(its)
        return code, shown.decode(), same

    def test_q_ends_top(self):
        for interval in "0.1", "3600":
            expect = b"q ends" if interval == "3600" else b"terraced"
            code, _, same = self.on_terminal("top", "--interval", interval, answer=b"q", expect=expect)
            self.assertEqual((code, same), (OK, True))

    def test_top_is_one_snapshot_as_json(self):
        shown = json.loads(self.terrace("top", "--json", "--interval", "0.1").stdout)
        self.assertEqual(shown["groups"][0]["tiers"][0]["tier"], "host")
        self.assertIn("requests_per_second", shown)
        self.assertGreater(shown["seconds"], 0)
        lines = self.terrace("top", "--json", "--interval", "0.1", "--count", "2").stdout.splitlines()
        self.assertEqual([sorted(json.loads(line)) for line in lines], [sorted(shown)] * 2)

    def test_no_colour_or_cursor_without_a_terminal(self):
        self.assertNotIn("\x1b", self.terrace("top", "--count", "1", "--interval", "0.1").stdout)
        self.assertNotIn("\x1b", self.terrace("bench", "--objects", "1", "--object-bytes", "4096", "--lookups", "1", "--rounds", "1").stderr)

    def test_what_removes_everything_asks_on_a_terminal(self):
        self.put("something")
        for words in (["clear", "--all"], ["drain"], ["shutdown"]):
            code, shown, _ = self.on_terminal(*words, answer=b"no\n", expect=b"Type yes: ")
            self.assertEqual(code, FAILED, shown)
            self.assertIn("nothing was changed", shown)
        self.assertEqual(self.terrace("status").returncode, OK)
        code, shown, _ = self.on_terminal("clear", "--all", answer=b"yes\n", expect=b"Type yes: ")
        self.assertEqual(code, OK, shown)
        code, shown, _ = self.on_terminal("clear", "--all", "--yes", expect=b"cleared")
        self.assertEqual(code, OK, shown)
        self.expect(self.terrace("clear", "--all"), OK, "cleared")  # scripts are not asked


class DaemonStart(unittest.TestCase):
    """--check fails where the start fails, with the same words."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="terrace-start-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.base = (f'[[listen]]\npath = "{self.folder}/s"\n[disk]\nbytes = 0\n[metrics]\naddress = "127.0.0.1:0"\n'
                     '[host]\nbytes = "16MiB"\nprefault = false\n')

    def terraced(self, text, *words):
        config = self.folder / "terraced.toml"
        config.write_text(text)
        return subprocess.run([TERRACED, "--config", config, *words], text=True, capture_output=True, timeout=PATIENCE)

    def refused(self, text, *parts):
        for words in ["--check"], []:
            done = self.terraced(text, *words)
            self.assertEqual(done.returncode, 2, (words, done))
            for part in parts:
                self.assertIn(part, done.stderr)

    def test_a_missing_folder_of_a_socket_is_never_made(self):
        for section in f'[[listen]]\npath = "{self.folder}/none/s"\n', f'[[resp]]\naddress = "{self.folder}/none/s"\n':
            option = "listen.path" if "listen" in section else "resp.address"
            self.refused(section + (self.base if "resp" in section else self.base.split("\n", 2)[2]),
                         f"{option} is \"{self.folder}/none/s\", whose folder does not exist",
                         f"make it: mkdir -p {self.folder}/none")
            self.assertFalse((self.folder / "none").exists())
        (self.folder / "file").touch()
        self.refused(self.base.replace(f"{self.folder}/s", f"{self.folder}/file/s"), "which is not a directory")

    def test_a_numa_node_that_does_not_exist(self):
        self.refused(self.base + 'numa_node = "1023"\n', "host.numa_node is \"1023\"; expected: a node of this machine with memory: ")

    def test_two_names_of_one_socket(self):
        (self.folder / "link").symlink_to(self.folder)
        for other in f"{self.folder}//s", f"{self.folder}/link/s":
            self.refused(f'[[listen]]\npath = "{other}"\ngroup = "b"\n' + self.base, "listen.path", "names the socket")
        self.refused(self.base + f'[[resp]]\naddress = "{self.folder}/./s"\n', "resp.address", "names the socket")

    def test_passwords(self):
        door = self.base + f'[[resp]]\naddress = "127.0.0.1:0"\npassword_file = "{self.folder}/password"\n'
        password = self.folder / "password"
        self.refused(door, f"{password} (password_file of [[resp]]) cannot be read: No such file")
        password.write_text("x\n")
        os.chmod(password, 0o644)
        self.refused(door, f"{password} (password_file of [[resp]]) is open to every user")
        password.write_text("\n")
        os.chmod(password, 0o600)
        self.refused(door, "expected a password of 1 to")
        password.unlink()
        os.mkfifo(password, 0o600)
        self.refused(door, f"{password} (password_file of [[resp]]) is not a plain file")

    def test_mistakes_hide_nothing_else(self):
        wrong = self.base.replace(f"{self.folder}/s", f"{self.folder}/none/s") + 'bytez = "1MiB"\nsegment_bytes = "64MB"\n'
        done = self.terraced(wrong, "--check")
        self.assertEqual(done.returncode, 2, done)
        for part in ("unknown option 'bytez' in [host]", 'fix: write segment_bytes = "64MiB"',
                     f'listen.path is "{self.folder}/none/s", whose folder does not exist'):
            self.assertIn(part, done.stderr)
        done = self.terraced(self.base.replace(f'"{self.folder}/s"', "7"), "--check")
        self.assertIn("listen[0].path is a whole number", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, "nobody asked for the socket's default path\n" + done.stderr)
        config = self.folder / "terraced.toml"
        config.write_text(wrong)
        doctor = subprocess.run([TERRACE, "doctor", "--terraced", TERRACED, "--config", config, "--json"], text=True,
                                capture_output=True, timeout=PATIENCE)
        told = [each["text"] for each in json.loads(doctor.stdout)["findings"] if each["name"] == "configuration"]
        self.assertEqual(len(told), 3, told)

    def test_the_doctor_asks_stores(self):
        key = self.folder / "realm"
        key.write_bytes(b"k" * 32)
        os.chmod(key, 0o600)

        def found(address):
            config = self.folder / "terraced.toml"
            config.write_text(self.base + f'[[remote]]\naddress = "{address}"\nrealm_key_file = "{key}"\n')
            self.assertEqual(self.terraced(config.read_text(), "--check").returncode, 0, "it asks nobody")
            done = subprocess.run([TERRACE, "doctor", "--terraced", TERRACED, "--config", config, "--json"], text=True,
                                  capture_output=True, timeout=PATIENCE)
            return next(each for each in json.loads(done.stdout)["findings"] if each["name"] == f"remote store {address}")

        missing = found(f"{self.folder}/store.sock")
        self.assertEqual(missing["state"], "warning", missing)
        self.assertIn("connect: ", missing["text"])
        self.assertIn("check that the server runs", missing["fix"])
        server = shutil.which("valkey-server") or shutil.which("redis-server")
        if not server:
            self.skipTest("no valkey-server or redis-server")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        store = subprocess.Popen([server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder],
                                 stdout=subprocess.PIPE, text=True)
        try:
            for line in store.stdout:
                if "eady to accept connections" in line:
                    break
            self.assertEqual(found(f"127.0.0.1:{port}")["state"], "ok")
            wrong = found(f"cluster://127.0.0.1:{port}")
            self.assertEqual(wrong["state"], "warning", wrong)
            self.assertIn(f"write 127.0.0.1:{port} as address", wrong["fix"])
            wrong = found(f"sentinel://127.0.0.1:{port}/kv")
            self.assertIn(f"write 127.0.0.1:{port} as address", wrong["fix"])
        finally:
            store.kill()
            store.wait()
            store.stdout.close()

    def test_closed_descriptors_are_opened(self):
        # The log has nowhere to go, and no socket gets its lines.
        config = self.folder / "terraced.toml"
        config.write_text(self.base)
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ready.settimeout(PATIENCE)
        ready.bind(str(self.folder / "notify"))
        started = subprocess.Popen(["bash", "-c", f"exec {TERRACED} --config {config} <&- >&- 2>&-"],
                                   env=dict(os.environ, NOTIFY_SOCKET=str(self.folder / "notify")))
        try:
            while b"READY=1" not in ready.recv(4096):
                pass
            targets = {fd: os.readlink(f"/proc/{started.pid}/fd/{fd}") for fd in (0, 1, 2)}
            self.assertEqual(set(targets.values()), {"/dev/null"})
            status = subprocess.run([TERRACE, "status", "--json", "--socket", self.folder / "s"], capture_output=True, timeout=PATIENCE)
            self.assertEqual(status.returncode, OK, status)
        finally:
            started.terminate()
            self.assertEqual(started.wait(PATIENCE), 0)
            ready.close()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
