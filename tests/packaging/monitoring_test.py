#!/usr/bin/env python3
"""The alert rules and the dashboard, with the tools of the package `prometheus`: each alert fires on series that deserve it
and is silent on those that do not, a Prometheus server that scrapes a working daemon answers each query of the dashboard, and
the dashboard is what Grafana's schema has.

    monitoring_test.py TERRACED TERRACE

Exit code 77 with a reason: Prometheus is not installed.
"""

import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "e2e")]
import index_tools  # noqa: E402
import make_dashboard  # noqa: E402
import prometheus_scrape  # noqa: E402

RULES = ROOT / "config" / "prometheus-rules.yml"
TERRACED, TERRACE = (pathlib.Path(name).resolve() for name in sys.argv[1:3]) if len(sys.argv) > 2 else (None, None)
PATIENCE = 120  # seconds; only turns a hang into a failure

# By alert: series of one sample a minute that deserve it, from the sixth minute on, and series that do not.
SERIES = {
    "TerraceDown": (['up{job="terrace"}', "1x5 0x40"], ['up{job="terrace"}', "1x45"]),
    "TerraceTierDegraded": (["terrace_tier_degraded", "0x5 1x40"],
                            ["terrace_tier_degraded", "0x45", 'terrace_tier_degraded{tier="remote"}', "0x5 1x40"]),
    "TerraceRemoteStoreOutOfService": (['terrace_tier_degraded{tier="remote"}', "0x5 1x40"],
                                       ['terrace_tier_degraded{tier="remote"}', "0x36 1x4 0x4",
                                        'terrace_tier_degraded{tier="disk"}', "0x5 1x40"]),
    "TerraceRemoteValuesDamaged": (['terrace_remote_misses_total{reason="not_authentic"}', "0x5 1+1x40"],
                                   ['terrace_remote_misses_total{reason="absent"}', "0x5 1+1x40",
                                    'terrace_remote_misses_total{reason="damaged"}', "3x45",
                                    'terrace_remote_replica_reads_total{answer="read"}', "0x5 1+1x40"]),
    "TerraceDiskErrors": (["terrace_disk_errors_total", "0x5 1+1x40"], ["terrace_disk_errors_total", "3x45"]),
    "TerraceDamagedObjects": (['terrace_tier_evictions_total{reason="damaged"}', "0x5 1+1x40"],
                              ['terrace_tier_evictions_total{reason="space"}', "0x5 1+1x40"]),
    "TerraceNothingToEvict": (["terrace_tier_evictions_without_victim_total", "0x5 1+1x40",
                               "terrace_tier_waiting_requests", "0x5 2x40"],
                              ["terrace_tier_evictions_without_victim_total", "0x5 1+1x40",
                               "terrace_tier_waiting_requests", "0x45"]),
    "TerraceDropped": (["terrace_tier_dropped_total", "0x5 1+1x40"], ["terrace_tier_dropped_total", "7x45"]),
    "TerraceOldLeases": (["terrace_leases_old", "0x5 1x40"], ["terrace_leases_old", "0x45"]),
    "TerraceRequestsRefused": (['terrace_refused_total{reason="queue_full"}', "0x5 60+60x40"],
                               ['terrace_refused_total{reason="closing"}', "0x5 60+60x40"]),
    "TerraceInternalErrors": (['terrace_requests_total{code="internal"}', "0x5 1+1x40"],
                              ['terrace_requests_total{code="ok"}', "0x5 1+1x40"]),
    "TerraceWorkersSaturated": (["terrace_worker_busy_seconds_total", "0x5 60+59x40"],
                                ["terrace_worker_busy_seconds_total", "0+30x45"]),
    "TerraceEngineAway": (['vllm:terrace_connected{engine="0"}', "3x5 0x40"], ['terrace_connected{adapter="sglang"}', "0x5 2x40"]),
}
FIRES_AT = "40m"


def series_of(words):
    return [{"series": name, "values": values} for name, values in zip(words[::2], words[1::2])]


def case(alert, words, firing):
    samples = [{"value": 1}] if firing else []
    expr = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'
    return {"name": f"{alert} {'fires' if firing else 'is silent'}", "interval": "1m", "input_series": series_of(words),
            "promql_expr_test": [{"expr": expr, "eval_time": FIRES_AT, "exp_samples": samples}]}


@contextlib.contextmanager
def daemon(folder, metrics):
    """A daemon with a disk tier that a workload has gone through. Yields when it serves."""
    socket = f"{folder}/terrace.sock"
    pathlib.Path(folder, "terraced.toml").write_text(
        f'[[listen]]\npath = "{socket}"\n[host]\nbytes = "64MiB"\n'
        f'[disk]\nbytes = "256MiB"\npath = "{folder}"\n[metrics]\naddress = "{metrics}"\n')
    process = subprocess.Popen([TERRACED, "--config", f"{folder}/terraced.toml"], stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if "listens on" in line:
                break
        else:
            raise RuntimeError(f"terraced ended with {process.wait()}")
        yield socket
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


@contextlib.contextmanager
def prometheus(folder, target):
    """A Prometheus server with our rules that scrapes the target each second. Yields its port."""
    port = prometheus_scrape.free_port()
    pathlib.Path(folder, "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "terrace", "static_configs": [{"targets": [target]}]}]}))
    server = subprocess.Popen([shutil.which("prometheus"), f"--config.file={folder}/prometheus.yml",
                               f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        prometheus_scrape.wait_until_ready(server)
        yield port
    finally:
        server.kill()
        server.communicate()


def wait_for_samples(port, count):
    """Returns when the server has scraped so many times: it announces no scrape."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        found = prometheus_scrape.ask(port, "query", query='count_over_time(terrace_build_info{job="terrace"}[5m])')["result"]
        if found and int(found[0]["value"][1]) >= count:
            return
        time.sleep(0.1)
    raise RuntimeError("Prometheus does not scrape the daemon")


class Alerts(unittest.TestCase):
    def test_each_alert_has_a_case(self):
        rules = yaml.safe_load(RULES.read_text())["groups"]
        self.assertEqual({rule["alert"] for group in rules for rule in group["rules"]}, set(SERIES))

    def test_each_alert_fires_when_it_should_and_is_silent_otherwise(self):
        cases = [case(alert, words, firing) for alert, both in SERIES.items() for words, firing in zip(both, (True, False))]
        with tempfile.TemporaryDirectory(prefix="terrace-alerts-") as folder:
            file = pathlib.Path(folder, "alerts.json")  # JSON is YAML
            file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}))
            ran = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


class Dashboard(unittest.TestCase):
    def test_the_file_is_what_the_tool_writes(self):
        made = subprocess.run([sys.executable, ROOT / "tools" / "make_dashboard.py", "--check"], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)

    def test_panels_have_a_place_and_a_number_of_their_own(self):
        panels = make_dashboard.panels()
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = set()
        for panel in panels:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertLessEqual(place["x"] + place["w"], make_dashboard.COLUMNS)
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells

    def test_grafana_knows_every_field_and_its_type(self):
        def changed(change):
            made = json.loads(make_dashboard.FILE.read_text())
            change(made, made["panels"][1])  # the first panel under the first row
            return made

        right, *wrong = index_tools.errors("grafana", [json.loads(make_dashboard.FILE.read_text()), *(changed(one) for one in (
            lambda made, panel: made.update(editible=True),
            lambda made, panel: made.update(refresh=30),
            lambda made, panel: made["templating"]["list"][0].update(type="datasources"),
            lambda made, panel: panel.update(type="timeserie"),
            lambda made, panel: panel["gridPos"].update(w="8"),
            lambda made, panel: panel["options"]["legend"].update(placement="below"),
            lambda made, panel: panel["options"].update(tooltips={}),
            lambda made, panel: panel["fieldConfig"]["defaults"].update(unit="requests"),
            lambda made, panel: panel["fieldConfig"]["defaults"]["custom"].update(fillOpacity="10"),
            lambda made, panel: panel["targets"][0].update(expression="up"),
            lambda made, panel: panel["datasource"].update(type="prometheuses")))])
        self.assertEqual(right, [])
        self.assertEqual([i for i, found in enumerate(wrong) if not found], [])

    def test_prometheus_answers_each_query_about_a_working_daemon(self):
        metrics = f"127.0.0.1:{prometheus_scrape.free_port()}"
        with tempfile.TemporaryDirectory(prefix="terrace-dashboard-") as folder, daemon(folder, metrics) as socket, \
                prometheus(folder, metrics) as port:
            wait_for_samples(port, 2)
            trace = f"{folder}/trace.jsonl"
            subprocess.run([TERRACE, "trace", "generate", "--requests", "60", "-o", trace], check=True, timeout=PATIENCE,
                           capture_output=True)
            for _ in range(2):  # a rate needs a sample from before: the first workload makes the series of its space
                subprocess.run([TERRACE, "replay", trace, "--socket", socket], check=True, timeout=PATIENCE, capture_output=True)
                scraped = prometheus_scrape.ask(port, "query", query='count_over_time(up{job="terrace"}[5m])')["result"]
                wait_for_samples(port, int(scraped[0]["value"][1]) + 2)
            answers = {}
            for expr in make_dashboard.expressions():
                query = expr.replace("$job", "terrace").replace("$instance", ".*").replace("$__rate_interval", "1m")
                answers[expr] = prometheus_scrape.ask(port, "query", query=query)["result"]
        for title in ("Requests", "Share of looked up tokens that were found", "Occupancy", "Loaded and stored",
                      "Time of disk operations: slowest hundredth", "Busy share of workers"):
            queries = next(queries for _, row in make_dashboard.ROWS for name, _, queries in row if name == title)
            for expr, _ in queries:
                self.assertTrue(answers[expr], f"{title}: {expr}")
        found = answers[make_dashboard.ROWS[1][1][0][2][0][0]]
        self.assertTrue(all(0 <= float(each["value"][1]) <= 1 for each in found), found)


def main():
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if missing:
        print(f"skipped: no {' and no '.join(missing)} on this machine; install the package `prometheus`")
        return 77
    return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
