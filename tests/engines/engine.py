"""An engine process (vllm_engine.py, sglang_engine.py) that a test gives commands."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

START_SECONDS = 1500  # beside builds on two processors; 10 on a quiet machine
CALL_SECONDS = 600  # only turns a hang into a failure


class Engine:
    def __init__(self, socket: str, script: str = "vllm_engine.py", **settings: str) -> None:
        """`settings`: further environment variables."""
        inward, self._inward = os.pipe()
        self._outward, outward = os.pipe()
        self.log = tempfile.NamedTemporaryFile(prefix="terrace-engine-", suffix=".log")
        command = [sys.executable, Path(__file__).parent / script, os.environ["TERRACE_TEST_MODEL"], socket, str(inward), str(outward)]
        self.process = subprocess.Popen(command, pass_fds=[inward, outward], stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env={**os.environ, **settings}, start_new_session=True)
        os.close(inward)
        os.close(outward)
        self._answers = b""
        self._started = False
        self.pools: list[Path] = []  #: in /dev/shm
        self.clients: list[int] = []  #: its processes that are clients of the daemon

    def ready(self) -> Engine:
        if not self._started:
            told = self.answer(START_SECONDS)
            self.pools = [Path(path) for path in told["pools"]]
            self.clients = told["clients"]
            self._started = True
        return self

    def begin(self, command: str, **arguments: Any) -> None:
        self.ready()
        os.write(self._inward, json.dumps([command, arguments]).encode() + b"\n")

    def answer(self, seconds: float = CALL_SECONDS) -> dict[str, Any]:
        while b"\n" not in self._answers:
            if not select.select([self._outward], [], [], seconds)[0]:
                raise AssertionError(f"the engine did not answer within {seconds} s:\n{self.log_text()}")
            came = os.read(self._outward, 1 << 16)
            if not came:
                raise AssertionError(f"the engine ended with {self.process.wait()}:\n{self.log_text()}")
            self._answers += came
        line, _, self._answers = self._answers.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        self.begin(command, **arguments)
        return self.answer()

    @property
    def times_connected(self) -> int:
        """Of all its connections together: each is logged once it is used, which is later than the daemon has it."""
        return self.whole_log().count("connected to the Terrace daemon at")

    def log_text(self) -> str:
        return Path(self.log.name).read_text(errors="replace")[-6000:]

    def whole_log(self) -> str:
        return Path(self.log.name).read_text(errors="replace")

    def end(self) -> int:
        """In order."""
        self.call("end")
        os.close(self._inward)
        self._inward = -1
        return self.process.wait(CALL_SECONDS)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # SGLang is several processes
        self.process.wait()
        for pool in self.pools:  # which vLLM leaves there when it is killed
            pool.unlink(missing_ok=True)
        for descriptor in (self._inward, self._outward):
            if descriptor >= 0:
                os.close(descriptor)
        self._inward = self._outward = -1
