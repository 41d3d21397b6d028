#!/usr/bin/env python3
"""Writes config/grafana-dashboard.json, the dashboard of terraced for Grafana.

    make_dashboard.py            writes the file
    make_dashboard.py --check    fails if the file is not what would be written, or if a query names an unknown metric

ROWS below is the whole dashboard: each row is a question that an operator has, and each panel is a title, a unit and its
queries. The metrics are those of docs/metrics.md. tests/packaging/monitoring_test.py asks a Prometheus server each query.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "config" / "grafana-dashboard.json"
COLUMNS = 24  # Grafana's grid
HEIGHT = 8
SELECTOR = 'job="$job",instance=~"$instance"'


def rate(metric, by, labels=""):
    """The rate of a counter, summed by these labels."""
    chosen = f"{SELECTOR},{labels}" if labels else SELECTOR
    return f"sum by ({by}) (rate({metric}{{{chosen}}}[$__rate_interval]))"


def gauge(metric, by, labels=""):
    chosen = f"{SELECTOR},{labels}" if labels else SELECTOR
    return f"sum by ({by}) ({metric}{{{chosen}}})"


def quantile(q, histogram, by, labels=""):
    return f"histogram_quantile({q}, {rate(histogram + '_bucket', 'le, ' + by, labels)})"


def ratio(part, whole):
    return f"{part} / ({whole} > 0)"


# What engines show beside their own metrics, in jobs of their own (docs/engines/); vLLM's connector prefixes the name.
OF_ENGINES = {"terrace_connected"}
ENGINES_CONNECTED = 'sum by (instance, adapter) ({__name__=~"terrace_connected|vllm:terrace_connected"})'

# The question of a row, and its panels: title, unit, and queries with their legends.
ROWS = [
    ("Is it used?", [
        ("Requests", "reqps", [(rate("terrace_requests_total", "verb"), "{{verb}}")]),
        ("Tokens looked up", "short", [(rate("terrace_space_asked_tokens_total", "space"), "{{space}}")]),
        ("Connections", "none", [(gauge("terrace_connections", "instance, group"), "{{instance}} {{group}}")]),
    ]),
    ("Does it pay?", [
        ("Share of looked up tokens that were found", "percentunit",
         [(rate("terrace_space_hit_tokens_total", "job, tier") + " / on (job) group_left () (" +
           rate("terrace_space_asked_tokens_total", "job") + " > 0)", "{{tier}}")]),
        ("Tokens that engines did not compute", "short",
         [(rate("terrace_space_hit_tokens_total", "space"), "{{space}}")]),
        ("Seconds of computing saved in each second, less those of the loads", "short",
         [(rate("terrace_computing_saved_seconds_total", "group") + " - " +
           rate("terrace_computing_saved_load_seconds_total", "group"), "{{group}}")]),
        ("Loaded and stored", "Bps", [(rate("terrace_space_loaded_bytes_total", "group"), "loaded {{group}}"),
                                      (rate("terrace_space_stored_bytes_total", "group"), "stored {{group}}")]),
        ("Time of lookups and loads", "s",
         [(quantile(0.5, "terrace_request_duration_seconds", "verb", 'verb=~"lookup|load"'), "{{verb}} median"),
          (quantile(0.99, "terrace_request_duration_seconds", "verb", 'verb=~"lookup|load"'), "{{verb}} p99")]),
        ("Tokens that were not found, by reason", "short",
         [(rate("terrace_miss_tokens_total", "reason"), "{{reason}}")]),
        ("Tokens left to the engine because it computes them faster", "short",
         [(rate("terrace_recompute_tokens_total", "group"), "{{group}}")]),
        ("Hits of other policies and sizes (shadows)", "percentunit",
         [(ratio(rate("terrace_shadow_hits_total", "policy, capacity_bytes"),
                 rate("terrace_shadow_asked_total", "policy, capacity_bytes")), "{{policy}} {{capacity_bytes}}")]),
    ]),
    ("Is it full?", [
        ("Occupancy", "percentunit",
         [(ratio(gauge("terrace_tier_used_bytes", "instance, group, tier"),
                 gauge("terrace_tier_capacity_bytes", "instance, group, tier")), "{{instance}} {{group}} {{tier}}")]),
        ("Evicted objects", "ops", [(rate("terrace_tier_evictions_total", "tier, reason"), "{{tier}} {{reason}}")]),
        ("Age at eviction: half are younger", "s",
         [(quantile(0.5, "terrace_tier_eviction_age_seconds", "tier"), "{{tier}}")]),
        ("Bytes that leases hold", "bytes", [(gauge("terrace_tier_leased_bytes", "instance, group"),
                                              "{{instance}} {{group}}")]),
        ("Requests that wait for memory", "none", [(gauge("terrace_tier_waiting_requests", "group, tier"),
                                                    "{{group}} {{tier}}")]),
        ("Objects that were not admitted", "ops", [(rate("terrace_tier_refused_total", "tier, reason"),
                                                    "{{tier}} {{reason}}"),
                                                   (rate("terrace_tier_dropped_total", "tier"), "{{tier}} dropped")]),
    ]),
    ("Who hurts whom?", [
        ("Slowest hundredth of all requests", "s",
         [(quantile(0.99, "terrace_request_duration_seconds", "group"), "{{group}}")]),
        ("Requests that waited for credit of their connection", "ops",
         [(rate("terrace_connection_stalls_total", "group"), "{{group}}")]),
        ("Bytes of tenants", "bytes", [(gauge("terrace_tenant_used_bytes", "group, tier, quota"),
                                        "{{group}} {{tier}} {{quota}}")]),
        ("Memory of requests and regions", "bytes",
         [(gauge("terrace_request_memory_bytes", "group"), "requests {{group}}"),
          (gauge("terrace_region_bytes", "group"), "regions {{group}}")]),
        ("Refused", "ops", [(rate("terrace_refused_total", "group, reason"), "{{group}} {{reason}}")]),
        ("Leases, and those that are old", "none", [(gauge("terrace_leases", "group"), "{{group}}"),
                                                    (gauge("terrace_leases_old", "group"), "old {{group}}")]),
    ]),
    ("Is a disk slow?", [
        ("Time of disk operations: slowest hundredth", "s",
         [(quantile(0.99, "terrace_disk_operation_duration_seconds", "path, operation"), "{{path}} {{operation}}")]),
        ("Transferred", "Bps", [(rate("terrace_disk_transferred_bytes_total", "path, operation"),
                                 "{{path}} {{operation}}")]),
        ("Queued operations", "none", [(gauge("terrace_disk_queued", "path, line"), "{{path}} {{line}}")]),
        ("Errors, stalls and damage", "ops", [(rate("terrace_disk_errors_total", "path, operation"),
                                               "error {{path}} {{operation}}"),
                                              (rate("terrace_disk_stalls_total", "path, operation"),
                                               "stall {{path}} {{operation}}"),
                                              (rate("terrace_disk_damage_total", "path, kind"),
                                               "damage {{path}} {{kind}}")]),
        ("Tiers out of service", "none", [(gauge("terrace_tier_degraded", "instance, group, tier"),
                                           "{{instance}} {{group}} {{tier}}")]),
        ("Journal: share that a recovery would read", "percentunit",
         [(gauge("terrace_journal_fill_ratio", "instance, path"), "{{instance}} {{path}}")]),
    ]),
    ("Remote store", [
        ("Time of its answers to questions", "s",
         [(quantile(0.5, "terrace_remote_answer_seconds", "instance, group, tier"),
           "{{instance}} {{group}} {{tier}} median"),
          (quantile(0.99, "terrace_remote_answer_seconds", "instance, group, tier"),
           "{{instance}} {{group}} {{tier}} p99")]),
        ("What it answers to lookups, and lookups that it answered too late", "ops",
         [(rate("terrace_remote_presence_total", "answer"), "{{answer}}"),
          (rate("terrace_remote_late_lookups_total", "instance, group, tier"),
           "late {{instance}} {{group}} {{tier}}")]),
        ("Out of service", "none",
         [(gauge("terrace_tier_degraded", "instance, group, tier", 'tier=~"remote.*"'), "{{instance}} {{group}} {{tier}}")]),
        ("Read and written", "Bps",
         [(rate("terrace_remote_read_bytes_total", "group, tier"), "read {{group}} {{tier}}"),
          (rate("terrace_remote_written_bytes_total", "group, tier"), "written {{group}} {{tier}}"),
          (rate("terrace_remote_stored_bytes_total", "group, tier"), "written {{group}} {{tier}}, as stored")]),
        ("Misses, by reason", "ops", [(rate("terrace_remote_misses_total", "reason"), "{{reason}}")]),
        ("Sent again, and asked of replicas", "ops",
         [(rate("terrace_remote_retries_total", "group, command"), "lost or refused {{group}} {{command}}"),
          (rate("terrace_remote_hedges_total", "group"), "late, of a bucket {{group}}"),
          (rate("terrace_remote_hedges_won_total", "group"), "of these answered first {{group}}"),
          (rate("terrace_remote_replica_reads_total", "answer"), "replicas: {{answer}}")]),
    ]),
    ("Which engine or device is away?", [
        ("Accepted connections", "ops", [(rate("terrace_connections_accepted_total", "instance, group"),
                                          "{{instance}} {{group}}")]),
        ("Connections of each engine, by the engine itself", "none", [(ENGINES_CONNECTED, "{{instance}} {{adapter}}")]),
        ("Devices that copy", "none", [(gauge("terrace_device_ready", "instance, device"), "{{instance}} {{device}}")]),
        ("Failures of devices' processes", "ops", [(rate("terrace_device_failures_total", "instance, device"),
                                                    "{{instance}} {{device}}")]),
    ]),
    ("Is the daemon well?", [
        ("Busy share of workers", "percentunit", [(rate("terrace_worker_busy_seconds_total", "instance, worker"),
                                                   "{{instance}} {{worker}}")]),
        ("Longest turn of actors since the start", "s",
         [(f"max by (actor) (terrace_turn_longest_seconds{{{SELECTOR}}})", "{{actor}}")]),
        ("Internal errors and differences found by checks", "ops",
         [(rate("terrace_requests_total", "verb", 'code="internal"'), "{{verb}}"),
          (rate("terrace_check_differences_total", "group"), "difference {{group}}")]),
    ]),
]

VARIABLES = [
    {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus", "hide": 0},
    {"name": "job", "type": "query", "label": "Job", "hide": 0, "refresh": 1, "sort": 1,
     "datasource": {"type": "prometheus", "uid": "${datasource}"},
     "query": {"query": "label_values(terrace_build_info, job)", "refId": "job"}},
    {"name": "instance", "type": "query", "label": "Machine", "hide": 0, "refresh": 2, "sort": 1, "multi": True,
     "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
     "datasource": {"type": "prometheus", "uid": "${datasource}"},
     "query": {"query": 'label_values(terrace_build_info{job="$job"}, instance)', "refId": "instance"}},
]


def panel(number, title, unit, queries, place):
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number, "type": "timeseries", "title": title, "datasource": source, "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 10, "showPoints": "never"}},
                        "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                    "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [{"refId": chr(ord("A") + i), "datasource": source, "expr": expr, "legendFormat": legend,
                     "editorMode": "code", "range": True} for i, (expr, legend) in enumerate(queries)],
    }


def panels():
    made, y = [], 0
    for question, contents in ROWS:
        made.append({"id": len(made) + 1, "type": "row", "title": question, "collapsed": False, "panels": [],
                     "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})
        y += 1
        width = COLUMNS // 3
        for i, (title, unit, queries) in enumerate(contents):
            place = {"x": i % 3 * width, "y": y + i // 3 * HEIGHT, "w": width, "h": HEIGHT}
            made.append(panel(len(made) + 1, title, unit, queries, place))
        y += (len(contents) + 2) // 3 * HEIGHT
    return made


def dashboard():
    return {
        "title": "Terrace", "uid": "terrace", "tags": ["terrace"], "description": "The KV cache of inference engines.",
        "schemaVersion": 38, "version": 1, "editable": True, "graphTooltip": 1, "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"}, "timezone": "", "templating": {"list": VARIABLES},
        "annotations": {"list": []}, "links": [], "panels": panels(),
    }


def expressions():
    """Each query of the dashboard."""
    return [expr for _, contents in ROWS for _, _, queries in contents for expr, _ in queries]


def unknown_metrics():
    """Metrics that queries name and docs/metrics.md does not."""
    known = set(re.findall(r"^\| `(terrace_\w+)`", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE))
    known |= OF_ENGINES
    named = {name for expr in expressions() for name in re.findall(r"terrace_\w+", expr)}
    return sorted(name for name in named if re.sub(r"_bucket$", "", name) not in known)


def main():
    text = json.dumps(dashboard(), indent=1) + "\n"
    if sys.argv[1:] == ["--check"]:
        for name in unknown_metrics():
            print(f"error: the dashboard asks for {name}, which docs/metrics.md does not have")
        stale = not FILE.exists() or FILE.read_text() != text
        if stale:
            print(f"error: {FILE.relative_to(ROOT)} is not what tools/make_dashboard.py writes: run it")
        return 1 if stale or unknown_metrics() else 0
    if sys.argv[1:]:
        raise SystemExit(__doc__)
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
