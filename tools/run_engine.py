#!/usr/bin/env python3
"""Shows a hit without a GPU: a daemon, a vLLM server on processors with Terrace's connector, and two conversations through
OpenAI's client. `./run --engine vllm` builds first and calls this."""

import argparse
import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from run_workload import ROOT, Daemon, interruptible

sys.path.insert(0, str(ROOT / "bench/serving"))
from prepare import prepare  # noqa: E402

START_SECONDS = 600  # far more than a server needs, so that a hang is an error
CONFIGURATION = '[host]\nbytes = "1GiB"\n[disk]\nbytes = 0\n'


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """vLLM with the connector, in a session of its own, so that all of its processes end with it."""

    def __init__(self, made, daemon, folder):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = folder / "vllm.log"
        connector = {"kv_connector": "TerraceConnector", "kv_connector_module_path": "terrace.vllm.connector",
                     "kv_role": "kv_both", "kv_load_failure_policy": "recompute",
                     "kv_connector_extra_config": {"socket": str(daemon.socket_path)}}
        self.command = ["python", "-m", "vllm.entrypoints.openai.api_server", "--model", str(made.model),
                        "--served-model-name", "smollm2", "--host", "127.0.0.1", "--port", str(self.port),
                        "--dtype", "bfloat16", "--max-model-len", "4096", "--block-size", "32",
                        "--num-gpu-blocks-override", "256", "--max-num-seqs", "2", "--enforce-eager",
                        "--enable-prompt-tokens-details", "--disable-uvicorn-access-log",
                        "--kv-transfer-config", json.dumps(connector)]
        with open(self.log_path, "wb") as log:
            # The development mode has /reset_prefix_cache.
            self.process = subprocess.Popen([made.python, *self.command[1:]], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True,
                                            env={**made.environment, "VLLM_SERVER_DEV_MODE": "1"})

    def wait_until_ready(self):
        began = time.monotonic()
        while self.process.poll() is None and time.monotonic() - began < START_SECONDS:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/health", timeout=10):
                return True
            time.sleep(0.2)  # vLLM does not tell when it serves
        return False

    def stop(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
        self.process.wait()

    def show_log(self, lines=40):
        print("vLLM's log ends with:")
        for line in self.log_path.read_text(errors="replace").splitlines()[-lines:]:
            print(f"  {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--serve", action="store_true", help="keep serving until Ctrl-C")
    options = parser.parse_args()
    terraced = (options.build / "src" / "daemon" / "terraced").resolve()
    terrace = (options.build / "src" / "cli" / "terrace").resolve()
    print("installing vLLM for processors into ~/.cache/terrace, unless it is there (1.1 GiB to download, 3.3 GiB on disk)",
          flush=True)
    made = prepare()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="terrace-run-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    daemon = server = None
    try:
        config = folder / "terraced.toml"
        config.write_text(CONFIGURATION)
        daemon = Daemon(terraced, config, folder)
        if not daemon.wait_until_ready():
            print("terraced did not become ready")
            daemon.show_log()
            return 1
        server = Server(made, daemon, folder)
        print("starting vLLM:", shlex.join(server.command), flush=True)
        if not server.wait_until_ready():
            print("vLLM does not serve")
            server.show_log()
            return 1
        status = interruptible([made.python, ROOT / "tools/two_conversations.py", server.url, terrace, daemon.socket_path])
        if status != 0:
            server.show_log()
            return status
        if options.serve:
            print(f"\nvLLM serves at {server.url}/v1, terraced on {daemon.socket_path}; Ctrl-C ends them", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                server.process.wait()
        return 0
    finally:
        for one in (server, daemon):
            if one:
                one.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
