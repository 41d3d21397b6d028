#!/usr/bin/env python3
"""The files of packaging/ fit each other and the programs: manifests are those of the chart and fit Kubernetes' schemas, Helm
renders the same, configurations are accepted by terraced, words of command lines are those that the programs take.

    manifests_test.py TERRACED TERRACE
"""

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema
import yaml

import index_tools
import seccomp

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGING = ROOT / "packaging"
sys.path.insert(0, str(ROOT / "tools"))
import render_chart  # noqa: E402

TERRACED, TERRACE = sys.argv[1:3] if len(sys.argv) > 2 else (None, None)
# Each value of the chart that a template asks about, and what it may be.
CHOICES = {
    ("mode",): ("daemonset", "sidecar"), ("seccomp", "install"): (True, False), ("ipcLock",): (True, False),
    ("metrics",): ({"address": "127.0.0.1:9464", "tokenSecret": ""}, {"address": "0.0.0.0:9464", "tokenSecret": "terrace-metrics"}),
    ("gpuRuntimeClass",): ("", "nvidia"), ("extraConfig",): ("", "[copier]\nthreads = 3\n"),
}
SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
# Beside host.bytes: staging memory, the program and its records of objects (docs/containers.md).
MEMORY_BESIDE = 1 << 30


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)


def bytes_of(text):
    """Of a quantity of terraced, Kubernetes or compose."""
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]+)", text).groups()
    return int(number) * SIZES[unit[0].upper() + "iB"]


def all_choices():
    for values in itertools.product(*CHOICES.values()):
        yield dict(zip(CHOICES, values))


def documents(changes):
    configuration, workload = yaml.safe_load_all(render_chart.manifests(changes))
    return configuration, workload


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def containers_of(pod):
    return pod["initContainers"] + pod["containers"]


def daemon_of(pod):
    return next(one for one in containers_of(pod) if one["name"] == "terrace")


class Chart(unittest.TestCase):
    def test_the_manifests_are_those_of_the_chart(self):
        for path, mode in render_chart.MANIFESTS.items():
            self.assertEqual(path.read_text(), render_chart.manifest_file(mode), f"run tools/render_chart.py: {path}")

    def test_the_values_fit_their_schema(self):
        schema = json.loads((render_chart.CHART / "values.schema.json").read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        values = yaml.safe_load((render_chart.CHART / "values.yaml").read_text())
        jsonschema.validate(values, schema)
        self.assertEqual(set(values), set(schema["properties"]) - {"global"})
        for changes in all_choices():
            jsonschema.validate(render_chart.merged(values, changes), schema)
        for path, wrong in ((("mode",), "statefulset"), (("host", "bytes"), "8Gi"), (("image", "name"), "terrace"),
                            (("seccomp", "profile"), "../terrace.json"), (("clientUsers",), []),
                            (("metrics", "address"), "0.0.0.0:9464"), (("metrics", "tokenSecret"), "terrace-metrics")):
            with self.assertRaises(jsonschema.ValidationError, msg=path):
                jsonschema.validate(render_chart.merged(values, {path: wrong}), schema)

    def test_the_renderer_refuses_what_it_does_not_know(self):
        scope = {"Values": {"one": 1}}
        self.assertEqual(render_chart.render("a {{- if .Values.one }}\n{{ .Values.one }}{{ end }}", scope), "a\n1")
        for text in ("{{ .Values.two }}", "{{ lower .Values.one }}", "{{ if .Values.one }}", "{{ end }}"):
            with self.assertRaises((ValueError, IndexError), msg=text):
                render_chart.render(text, scope)

    def test_the_renderer_refuses_what_the_schema_does(self):
        done = run(sys.executable, ROOT / "tools" / "render_chart.py", "--set", "metrics.address=0.0.0.0:9464", "-")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("metrics.tokenSecret: an address that is not loopback needs the Secret of a token", done.stderr)
        done = run(sys.executable, ROOT / "tools" / "render_chart.py", "--set", "metrics.address=0.0.0.0:9464", "--set",
                   "metrics.tokenSecret=s", "-")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_value_is_used(self):
        values = yaml.safe_load((render_chart.CHART / "values.yaml").read_text())
        text = "".join(path.read_text() for path in (render_chart.CHART / "templates").iterdir())
        for name, value in values.items():
            for path in [f"{name}.{part}" for part in value] if isinstance(value, dict) and name not in (
                    "resources", "nodeSelector") else [name]:
                self.assertRegex(text, rf"\.Values\.{re.escape(path)}\b")

    def test_kubernetes_knows_every_field(self):
        choices = list(all_choices())
        wrong = index_tools.errors("kubernetes", [document for changes in choices for document in documents(changes)])
        self.assertEqual([found for found in wrong if found], [])

    def test_a_field_that_kubernetes_does_not_know_or_that_is_missing_is_noticed(self):
        def changed(change):
            workload = documents({})[1]
            change(workload)
            return workload

        unknown, missing, of_another_type = index_tools.errors("kubernetes", [
            changed(lambda one: pod_of(one).update(hostPIDs=True)), changed(lambda one: one["spec"].pop("selector")),
            changed(lambda one: daemon_of(pod_of(one))["securityContext"].update(runAsUser="root"))])
        self.assertEqual(len(unknown), 2, "an old version and a new one")
        self.assertIn("'hostPIDs' was unexpected", unknown[0])
        self.assertIn("'selector' is a required property", missing[0])
        self.assertIn("'root' is not of type", of_another_type[0])


class Helm(unittest.TestCase):
    def template(self, chart, changes):
        values = render_chart.merged(yaml.safe_load((render_chart.CHART / "values.yaml").read_text()), changes)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:  # JSON is YAML
            json.dump(values, file)
            file.flush()
            done = index_tools.helm("template", "terrace", str(chart), "--values", file.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(yaml.safe_load_all(done.stdout))

    def test_it_renders_what_our_renderer_does(self):
        for changes in all_choices():
            self.assertEqual(self.template(render_chart.CHART, changes), list(documents(changes)), changes)

    def test_it_finds_nothing_wrong_in_the_chart_and_packs_all_of_it(self):
        done = index_tools.helm("lint", "--strict", str(render_chart.CHART))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            done = index_tools.helm("package", str(render_chart.CHART), "--destination", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            (packed,) = pathlib.Path(folder).iterdir()
            self.assertEqual(self.template(packed, {}), list(documents({})))

    def test_it_refuses_what_the_schema_does(self):
        done = index_tools.helm("template", "terrace", str(render_chart.CHART), "--set", "metrics.address=0.0.0.0:9464")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/metrics/tokenSecret", done.stderr)


class Pods(unittest.TestCase):
    def test_mounts_have_volumes_and_volumes_are_mounted(self):
        for changes in all_choices():
            pod = pod_of(documents(changes)[1])
            mounted = {mount["name"] for one in containers_of(pod) for mount in one["volumeMounts"]}
            self.assertEqual(mounted, {one["name"] for one in pod["volumes"]}, changes)

    def test_containers_run_with_as_few_rights_as_they_need(self):
        for changes in all_choices():
            pod = pod_of(documents(changes)[1])
            for one in containers_of(pod):
                if one["name"] == "engine":
                    continue
                rights = one["securityContext"]
                self.assertEqual(rights["capabilities"]["drop"], ["ALL"], changes)
                self.assertTrue(rights["readOnlyRootFilesystem"], changes)
                self.assertFalse(rights["allowPrivilegeEscalation"], changes)
            rights = daemon_of(pod)["securityContext"]
            self.assertEqual(rights["seccompProfile"]["type"], "Localhost")
            self.assertEqual(rights.get("runAsNonRoot", False), not changes[("ipcLock",)])

    def test_the_profile_of_the_configuration_is_put_where_the_pod_names_it(self):
        configuration, workload = documents({})
        self.assertEqual(configuration["data"]["seccomp.json"].strip(), (PACKAGING / "seccomp.json").read_text().strip())
        prepare = containers_of(pod_of(workload))[0]
        name = daemon_of(pod_of(workload))["securityContext"]["seccompProfile"]["localhostProfile"]
        self.assertIn(f"/seccomp/{name}\n", prepare["command"][-1])
        self.assertNotIn("seccomp.json", documents({("seccomp", "install"): False})[0]["data"])

    def test_a_sidecar_starts_before_its_engine_and_shares_its_processes(self):
        pod = pod_of(documents({("mode",): "sidecar"})[1])
        self.assertEqual([one["name"] for one in pod["containers"]], ["engine"])
        self.assertEqual(daemon_of(pod)["restartPolicy"], "Always")
        self.assertTrue(pod["shareProcessNamespace"])
        self.assertFalse([one for one in pod["volumes"] if "hostPath" in one and one["name"] != "seccomp"])

    def test_memory_limits_leave_room_beside_host_memory(self):
        configuration, workload = documents({})
        host = re.search(r'bytes = "(\w+)"', configuration["data"]["terraced.toml"])[1]
        self.assertGreaterEqual(bytes_of(daemon_of(pod_of(workload))["resources"]["limits"]["memory"]),
                                bytes_of(host) + MEMORY_BESIDE)
        service = yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"]["terrace"]
        host = re.search(r'\[host\][^\[]*\nbytes = "(\w+)"', (PACKAGING / "terraced.toml").read_text())[1]
        self.assertGreaterEqual(bytes_of(service["mem_limit"]), bytes_of(host) + MEMORY_BESIDE)


class Programs(unittest.TestCase):
    def token(self):
        """A file as the chart mounts it."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = pathlib.Path(folder.name, "token")
        file.write_text("secret\n")
        file.chmod(0o440)
        return file

    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            return run(TERRACED, "--check", "--config", file.name)

    def test_terraced_accepts_every_configuration(self):
        texts = [documents(changes)[0]["data"]["terraced.toml"] for changes in all_choices()]
        texts.append((PACKAGING / "terraced.toml").read_text())
        for text in set(texts):
            # This machine need not have the memory; what is checked is the file.
            small = re.sub(r'(\[host\][^\[]*?\nbytes = )"\w+"', r'\1"64MiB"', text)
            small = small.replace("/etc/terrace-metrics/token", str(self.token()))
            done = self.check(small)
            self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}{done.stderr}")
            self.assertEqual(self.check(small.replace("uids", "users")).returncode, 2)

    def test_every_option_is_one_of_the_programs(self):
        known = set(re.findall(r"--[a-z-]+", run(TERRACED, "--help").stdout))
        image = (PACKAGING / "Containerfile").read_text()
        given = json.loads(re.search(r"^CMD (.*)$", image, re.MULTILINE)[1])
        for changes in all_choices():
            given += daemon_of(pod_of(documents(changes)[1]))["args"]
        options = {word for word in given if word.startswith("-")}
        self.assertTrue(options)
        self.assertLessEqual(options, known)

    def test_every_probe_is_a_command_of_terrace(self):
        compose = yaml.safe_load((PACKAGING / "compose.yaml").read_text())
        image = (PACKAGING / "Containerfile").read_text()
        probes = [compose["services"]["terrace"]["healthcheck"]["test"][1:],
                  json.loads(re.search(r"^HEALTHCHECK .* CMD (.*)$", image, re.MULTILINE)[1])]
        for changes in all_choices():
            daemon = daemon_of(pod_of(documents(changes)[1]))
            for name, path in ("startupProbe", "/readyz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz"):
                if changes[("metrics",)]["tokenSecret"]:  # the kubelet reaches the metrics
                    self.assertEqual(daemon[name]["httpGet"], {"path": path, "port": 9464})
                    self.assertNotIn("exec", daemon[name])
                else:
                    probes.append(daemon[name]["exec"]["command"])
        for program, *words in probes:
            self.assertEqual(program, "terrace")
            self.assertEqual(run(TERRACE, *words, "--help").returncode, 0, words)

    def test_the_socket_is_where_clients_look_for_it(self):
        sockets = {re.search(r'^path = "(/run/.*)"', text, re.MULTILINE)[1]
                   for text in (documents({})[0]["data"]["terraced.toml"], (PACKAGING / "terraced.toml").read_text())}
        for name in ("Containerfile", "Containerfile.vllm"):
            sockets.add(re.search(r"^ENV TERRACE_SOCKET=(.*)$", (PACKAGING / name).read_text(), re.MULTILINE)[1])
        self.assertEqual(sockets, {"/run/terrace/terrace.sock"})


class Images(unittest.TestCase):
    def names(self):
        for path in PACKAGING.glob("Containerfile*"):
            text = path.read_text()
            self.assertEqual(set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)),
                             {"${" + name + "}" for name in re.findall(r"^ARG (\w+)=", text, re.MULTILINE)}, path)
            yield from re.findall(r"^ARG \w+=(.*)$", text, re.MULTILINE)
        for service in yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"].values():
            yield from (service["image"], *service["build"]["args"].values())
        for changes in all_choices():
            yield from (one["image"] for one in containers_of(pod_of(documents(changes)[1])))

    def test_images_have_a_version_and_no_registry(self):
        for name in self.names():
            self.assertRegex(name, r"^[a-z][a-z-]*(/[a-z-]+)?:v?\d[\w.-]*$")

    def test_the_sections_of_packages_exist(self):
        sections = re.findall(r"^\[(\w+)\]", (ROOT / "tools" / "packages.txt").read_text(), re.MULTILINE)
        asked = re.search(r"RUN tools/install_packages ((?:\w+ ?)+)", (PACKAGING / "Containerfile").read_text())[1].split()
        self.assertLessEqual({"build", "package"}, set(asked))
        self.assertLessEqual(set(asked), set(sections))

    def test_the_entry_point_says_what_is_missing_and_starts_the_daemon(self):
        text = (PACKAGING / "Containerfile").read_text()
        copied = re.search(r"^COPY packaging/entrypoint /usr/bin/([\w-]+)$", text, re.MULTILINE)[1]
        self.assertEqual(json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[1]), [copied])
        with tempfile.TemporaryDirectory() as folder:
            for program in (TERRACED, TERRACE):
                pathlib.Path(folder, pathlib.Path(program).name).symlink_to(pathlib.Path(program).resolve())
            config = pathlib.Path(folder, "terraced.toml")
            config.write_text(f'[[listen]]\npath = "{folder}/t.sock"\n[disk]\npath = "{folder}/none"\n')
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
            started = subprocess.run([PACKAGING / "entrypoint", "--config", config, "--version"], env=environment,
                                     capture_output=True, text=True, timeout=60)
        self.assertEqual(started.returncode, 0, started.stderr)
        self.assertIn("terraced", started.stdout)
        self.assertRegex(started.stderr, f'warning +configuration: disk.path names "{folder}/none", which does not exist')
        self.assertIn("-> mount its device, or make the directory", started.stderr)

    def test_the_user_is_the_same_everywhere(self):
        text = (PACKAGING / "Containerfile").read_text()
        user = re.search(r"^USER (\d+):\1$", text, re.MULTILINE)[1]
        self.assertIn(f"--uid {user}", text)
        values = yaml.safe_load((render_chart.CHART / "values.yaml").read_text())
        self.assertEqual(str(values["user"]), user)
        self.assertIn(int(user), values["clientUsers"])
        self.assertEqual(yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"]["terrace"]["user"],
                         f"{user}:{user}")
        self.assertIn(f", {user}]", (PACKAGING / "terraced.toml").read_text())


class Compose(unittest.TestCase):
    def test_both_containers_have_the_sockets_folder_and_no_namespace_in_common(self):
        services = yaml.safe_load((PACKAGING / "compose.yaml").read_text())
        for service in services["services"].values():
            self.assertIn("socket:/run/terrace", service["volumes"])
            self.assertFalse({"pid", "ipc", "network_mode", "privileged"} & set(service))
        named = {volume.split(":")[0] for service in services["services"].values() for volume in service["volumes"]}
        self.assertLessEqual(set(services["volumes"]), named)

    def test_files_that_it_names_exist(self):
        service = yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"]["terrace"]
        profile = next(one.split("=")[1] for one in service["security_opt"] if one.startswith("seccomp="))
        files = [profile, *(one.split(":")[0] for one in service["volumes"] if one.startswith("."))]
        for name in files:
            self.assertTrue((PACKAGING / name).is_file(), name)
        for one in yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"].values():
            self.assertTrue((PACKAGING / one["build"]["context"] / one["build"]["dockerfile"]).is_file())


    def test_it_is_what_the_specification_of_compose_files_has(self):
        compose = yaml.safe_load((PACKAGING / "compose.yaml").read_text().replace("${MODEL:?the folder of a model}", "/models"))

        def changed(*path, value):
            return render_chart.merged(compose, {path: value})

        right, *wrong = index_tools.errors("compose", [
            compose, changed("services", "terrace", "healthcheck", "interval", value="ten"),
            changed("services", "vllm", "depends_on", "terrace", "condition", value="healthy"),
            changed("services", "terrace", "mem_limit", value="2 gigs"),
            {**compose, "service": {}}])
        self.assertEqual(right, [])
        for found in wrong:
            self.assertTrue(found)


class Seccomp(unittest.TestCase):
    def test_the_profile_names_system_calls_once(self):
        names = seccomp.Profile(PACKAGING / "seccomp.json").names()
        self.assertEqual([name for name in names if seccomp.number_of(name) is None], [])
        self.assertEqual(len(names), len(set(names)))
        self.assertIsNone(seccomp.number_of("io_uring_setups"))

    def test_it_allows_what_the_rule_for_other_profiles_allows(self):
        rule = json.loads((ROOT / "config" / "seccomp-io_uring.json").read_text())
        self.assertLessEqual(set(rule["names"]), set(seccomp.Profile(PACKAGING / "seccomp.json").names()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
