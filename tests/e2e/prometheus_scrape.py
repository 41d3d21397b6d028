#!/usr/bin/env python3
"""Lets a real Prometheus server scrape one address, and checks what it took.

usage: prometheus_scrape.py ADDRESS [METRIC...]

ADDRESS is host:port of a running exposition. Each METRIC (a PromQL expression) must have at least one sample in the
server afterwards. Needs /usr/bin/prometheus (Debian package `prometheus`); exits with 77, which test runners show as
skipped, when it is absent. Uses Python's standard library alone.
"""
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

SKIPPED = 77
START_LIMIT_S = 60  # bounds a broken server; a working one is ready in about a second


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, path, **query):
    url = f"http://127.0.0.1:{port}/api/v1/{path}"
    if query:
        url += "?" + urllib.parse.urlencode(query)
    with urllib.request.urlopen(url, timeout=10) as answer:
        body = json.load(answer)
    if body["status"] != "success":
        raise RuntimeError(f"{url} answered {body}")
    return body["data"]


def wait_until_ready(server):
    """Returns when the server's log says that it takes requests."""
    for line in server.stderr:
        if "Server is ready to receive web requests" in line:
            return
    raise SystemExit(f"prometheus ended with {server.wait()} before it was ready")


def wait_for_scrape(port):
    """Asks the server's API until the samples can be found, because it announces no scrape, and a target counts as
    healthy a moment before."""
    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit:
        if ask(port, "query", query="up == 1")["result"]:
            return
        targets = ask(port, "targets", state="active")["activeTargets"]
        if targets and targets[0]["lastError"]:
            raise SystemExit(f"prometheus refuses what it scraped: {targets[0]['lastError']}")
        time.sleep(0.1)
    raise SystemExit(f"prometheus has not scraped its target in {START_LIMIT_S} s")


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    address, wanted = sys.argv[1], sys.argv[2:]
    binary = shutil.which("prometheus")
    if not binary:
        print("skipped: no prometheus on this machine; install the package `prometheus`")
        return SKIPPED
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="terrace-prometheus-") as folder:
        config = pathlib.Path(folder, "prometheus.yml")
        config.write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{"job_name": "terrace", "static_configs": [{"targets": [address]}]}],
        }))
        server = subprocess.Popen(
            [binary, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wait_until_ready(server)
            wait_for_scrape(port)
            missing = [m for m in wanted if not ask(port, "query", query=m)["result"]]
            series = len(ask(port, "query", query=f'{{job="terrace"}}')["result"])
        finally:
            server.kill()
            server.communicate()
    if missing:
        raise SystemExit(f"prometheus scraped {series} series, but none for: {', '.join(missing)}")
    print(f"prometheus scraped {series} series from {address}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
