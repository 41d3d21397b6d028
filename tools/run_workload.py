#!/usr/bin/env python3
"""Starts a daemon in a temporary folder, replays a trace on it, and stops it. `./run` builds first and calls this."""

import argparse
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What the daemon may take to serve, and to end once asked: far more than it needs, so that a hang is an error.
READY_SECONDS = 60
STOP_SECONDS = 60


class Daemon:
    """A terraced of our own. Its log goes to a file, which is shown when something goes wrong."""

    def __init__(self, program, config, folder):
        self.socket_path = folder / "terrace.sock"
        self.log_path = folder / "terraced.log"
        state = folder / "state"
        state.mkdir()
        notify_path = folder / "notify.sock"
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.notify.bind(str(notify_path))
        with open(self.log_path, "wb") as log:
            # A session of its own: Ctrl-C at the terminal reaches the replay, and the daemon is stopped after it.
            self.process = subprocess.Popen(
                [program, "--config", config, "--socket", self.socket_path, "--state-dir", state,
                 "--metrics", "127.0.0.1:0"],
                env=dict(os.environ, NOTIFY_SOCKET=str(notify_path)), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True)
        self.pidfd = os.pidfd_open(self.process.pid)

    def wait_until_ready(self):
        """True when the daemon has said READY=1, which it does as systemd's services do; False when it ended."""
        while True:
            readable, _, _ = select.select([self.notify, self.pidfd], [], [], READY_SECONDS)
            if self.notify in readable and b"READY=1" in self.notify.recv(4096).split(b"\n"):
                return True
            if self.pidfd in readable or not readable:
                return False

    def alive(self):
        return self.process.poll() is None

    def wait(self):
        self.process.wait()

    def stop(self):
        """Asks it to end; its exit code."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"the daemon did not end within {STOP_SECONDS} seconds after SIGTERM; it is killed")
            self.process.kill()
            self.process.wait()
            return 1

    def show_log(self, lines=40):
        print(f"the daemon's log ends with:")
        text = self.log_path.read_text(errors="replace").splitlines()
        print("\n".join(f"  {line}" for line in text[-lines:]), flush=True)


class Store:
    """A Valkey or Redis server without persistence, on a socket in the folder."""

    def __init__(self, folder):
        program = shutil.which("valkey-server") or shutil.which("redis-server")
        if not program:
            raise FileNotFoundError("no valkey-server or redis-server: install one of these packages")
        self.name = pathlib.Path(program).name
        self.socket_path = folder / "store.sock"
        self.process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", self.socket_path, "--save", "", "--appendonly", "no",
             "--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru", "--dir", folder],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)
        for line in self.process.stdout:
            if "eady to accept connections" in line:
                return
        raise RuntimeError(f"{self.name} does not start")

    def stop(self):
        self.process.kill()
        self.process.wait()


def share(options, terrace, terraced, trace, folder):
    """Two machines and a store: the first computes, the second one finds what the first has computed."""
    store = Store(folder)
    daemons = []
    try:
        key = folder / "realm"
        key.touch(0o600)
        key.write_bytes(os.urandom(32))
        config = folder / "terraced.toml"
        config.write_text(options.config.read_text() + f"""
[[remote]]
address = "{store.socket_path}"
realm_key_file = "{key}"
demotion = "write_through"
""")
        for name in ("first", "second"):
            (folder / name).mkdir()
            daemon = Daemon(terraced, config, folder / name)
            daemons.append(daemon)
            if not daemon.wait_until_ready():
                print(f"the terraced of the {name} machine did not become ready")
                daemon.show_log()
                return 1
        limit = ["--limit", str(options.limit)] if options.limit is not None else []
        for name, daemon in zip(("first", "second"), daemons):
            print(f"\nthe {name} machine replays the trace", flush=True)
            status = interruptible([terrace, "--socket", daemon.socket_path, "replay", trace, *limit,
                                    *options.replay_options])
            if status != 0:
                daemon.show_log()
                return status
            if daemon is daemons[0] and daemon.stop() != 0:  # it writes to the store what is still to be written
                daemon.show_log()
                return 1
        said = subprocess.run([terrace, "--socket", daemons[1].socket_path, "status", "--json"], check=True,
                              stdout=subprocess.PIPE).stdout
        remote = next(tier for tier in json.loads(said)["groups"][0]["tiers"] if tier["tier"] == "remote")
        read = remote["bytes_read"]
        print(f"\nremote       the second machine read {read / 2**20:,.1f} MiB from {store.name} that the first, "
              f"which has ended, had stored")
        return 0 if read != 0 else 1
    finally:
        for daemon in daemons:
            daemon.stop()
        store.stop()


def interruptible(command):
    """Runs a command in the foreground; 130 when it was interrupted."""
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # it got the signal as well, and ends with its summary


def serve(daemon, terrace):
    print(f"\nterraced serves on {daemon.socket_path}; try in another terminal:\n"
          f"  {terrace} --socket {daemon.socket_path} status\nCtrl-C ends it.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        daemon.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--config", type=pathlib.Path, default=ROOT / "config" / "terraced.toml")
    parser.add_argument("--trace", type=pathlib.Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--remote", action="store_true")
    parser.add_argument("replay_options", nargs="*")
    options = parser.parse_args()
    terrace = (options.build / "src" / "cli" / "terrace").resolve()
    terraced = (options.build / "src" / "daemon" / "terraced").resolve()
    if options.trace and not options.trace.is_file():
        parser.error(f"--trace {options.trace}: no such file")

    folder = pathlib.Path(tempfile.mkdtemp(prefix="terrace-run-"))
    daemon = None
    status = 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        trace = options.trace
        if not trace and (options.remote or not options.serve):
            trace = folder / "trace.jsonl"
            subprocess.run([terrace, "trace", "generate", "--output", trace], check=True)
        if options.remote:
            return share(options, terrace, terraced, trace, folder)
        begin = time.monotonic()
        daemon = Daemon(terraced, options.config, folder)
        if not daemon.wait_until_ready():
            print("terraced did not become ready")
            daemon.show_log()
            return 1
        print(f"starting terraced: {time.monotonic() - begin:.0f} s", flush=True)
        status = 0
        if trace:
            limit = ["--limit", str(options.limit)] if options.limit is not None else []
            status = interruptible([terrace, "--socket", daemon.socket_path, "replay", trace, *limit,
                                    *options.replay_options])
        if options.serve and status == 0:
            serve(daemon, terrace)
        died = not daemon.alive()
        ended = daemon.stop()
        if died or ended != 0:
            print(f"terraced ended with {ended}" + (" before it was asked to" if died else ""))
            daemon.show_log()
            status = status or ended or 1
        elif status != 0:
            daemon.show_log()
        return status
    except FileNotFoundError as missing:
        print(missing)
        return 1
    except subprocess.CalledProcessError as failure:
        return failure.returncode
    finally:
        if daemon:
            daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
