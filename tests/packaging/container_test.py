#!/usr/bin/env python3
"""terraced runs in a container under packaging/seccomp.json, and clients in other containers use it, of which each shares
only the socket's folder with it. The containers are made by bubblewrap as container engines make them: namespaces of their
own for users, processes, IPC and the network, no capabilities, a root that cannot be written, and one process in each.

    container_test.py TERRACED TERRACE

Exit code 77 with a reason: this machine has no bubblewrap, or makes no namespaces.
"""

import contextlib
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import yaml

import seccomp

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import render_chart  # noqa: E402

PROFILE = seccomp.Profile(ROOT / "packaging" / "seccomp.json")
TERRACED, TERRACE = (pathlib.Path(name).resolve() for name in sys.argv[1:3]) if len(sys.argv) > 2 else (None, None)
USER = 990
PATIENCE = 120  # seconds; only turns a hang into a failure
IO_URING = ("io_uring_setup", "io_uring_enter", "io_uring_register")
# A system call that the profile does not name ends the program, so a test finds that it is missing. The profile answers
# clone3 with ENOSYS, and glibc then calls clone.
STRICT = {"otherwise": seccomp.KILL, "answered": ["clone3"]}


def container(rights, binds, *options):
    """The command line of a container up to its program. `rights`: bubblewrap's options of its user and namespaces; `binds`:
    folders and files of the machine in it, pairs of the machine's and the container's."""
    words = ["bwrap", *rights, "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv",
             "--setenv", "PATH", "/usr/bin", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for link in ("bin", "lib", "lib64", "sbin"):
        if os.path.islink(f"/{link}"):
            words += ["--symlink", os.readlink(f"/{link}"), f"/{link}"]
        elif os.path.isdir(f"/{link}"):
            words += ["--ro-bind", f"/{link}", f"/{link}"]
    if os.path.exists("/etc/ld.so.cache"):
        words += ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for outside, inside in binds:
        words += ["--bind", str(outside), inside]
    return [*words, *options, "--remount-ro", "/"]


def sandbox(binds, *options):
    """A container of the daemon or of a client."""
    return container(["--unshare-all", "--unshare-user", "--uid", str(USER), "--gid", str(USER)],
                     [*binds, (TERRACED, "/opt/terraced"), (TERRACE, "/opt/terrace")],
                     "--setenv", "TERRACE_SOCKET", "/run/terrace/terrace.sock", *options)


def why_no_containers():
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    tried = subprocess.run([*sandbox([]), "/usr/bin/true"], capture_output=True, text=True, timeout=PATIENCE)
    return None if tried.returncode == 0 else f"bubblewrap makes no container here: {tried.stderr.strip()}"


class Log:
    """What a program writes into a pipe, read by a thread until the program ends."""

    def __init__(self, pipe):
        self.text = ""
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, args=[pipe])
        self.reader.start()

    def read(self, pipe):
        with pipe:
            for line in pipe:
                with self.changed:
                    self.text += line
                    self.changed.notify_all()

    def has(self, words):
        """Waits for these words."""
        with self.changed:
            return self.changed.wait_for(lambda: words in self.text, PATIENCE)

    def read_text(self):
        with self.changed:
            return self.text


class Containers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="terrace-container-")))
        self.shared, self.state, self.etc = (self.folder / name for name in ("run", "state", "etc"))
        for one in (self.shared, self.state, self.etc):
            one.mkdir()

    def configure(self, uids=(0, USER)):
        """The image's configuration, with less memory."""
        text = (ROOT / "packaging" / "terraced.toml").read_text()
        for one, other in (("1GiB", "64MiB"), ("4GiB", "64MiB"), ("[0, 990]", str(list(uids)))):
            self.assertIn(one, text)
            text = text.replace(one, other)
        (self.etc / "terraced.toml").write_text(text)

    def start(self, filter_file, limits=None):
        """Starts the daemon and returns when it is ready or has ended. Its process is the container's first one."""
        self.configure()
        notify = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        notify.bind(str(self.shared / "notify"))
        information, writable = os.pipe()
        words = sandbox([(self.shared, "/run/terrace"), (self.state, "/var/lib/terrace"), (self.etc, "/etc/terrace")],
                        "--setenv", "NOTIFY_SOCKET", "/run/terrace/notify",
                        "--seccomp", str(filter_file), "--info-fd", str(writable))
        self.daemon = subprocess.Popen([*words, "/opt/terraced", "--config", "/etc/terrace/terraced.toml"], text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       pass_fds=(filter_file, writable), preexec_fn=limits)
        self.log = Log(self.daemon.stdout)
        self.addCleanup(self.end)
        os.close(writable)
        os.close(filter_file)
        with open(information) as file:
            self.pid = json.load(file)["child-pid"]
        ended = os.pidfd_open(self.daemon.pid)
        self.addCleanup(os.close, ended)
        while True:
            ready, _, _ = select.select([notify, ended], [], [], PATIENCE)
            self.assertTrue(ready, self.log.read_text())
            if notify in ready and b"READY=1" in notify.recv(4096):
                return
            if ended in ready:
                return

    def end(self):
        self.daemon.kill()
        self.ended()

    def ended(self):
        """Waits for the daemon's end; its exit code."""
        code = self.daemon.wait(PATIENCE)
        self.log.reader.join(PATIENCE)
        return code

    def stop(self):
        """Ends the daemon as a container engine does; its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.ended()

    def client(self, *words, filter_file=None, binds=()):
        """Runs a command of terrace in a container of its own, which has the folder of the socket."""
        filter_file = PROFILE.compiled(**STRICT) if filter_file is None else filter_file
        try:
            return subprocess.run(
                [*sandbox([(self.shared, "/run/terrace"), *binds], "--seccomp", str(filter_file)), "/opt/terrace", *words],
                pass_fds=(filter_file,), capture_output=True, text=True, timeout=PATIENCE)
        finally:
            os.close(filter_file)

    def expect(self, done, code=0):
        self.assertEqual(done.returncode, code, f"{done.args}\n{done.stdout}{done.stderr}\n{self.log.read_text()}")
        return done.stdout

    def test_a_client_in_another_container_stores_and_loads(self):
        self.start(PROFILE.compiled(**STRICT))
        files = self.folder / "files"
        files.mkdir()
        content = os.urandom(3 << 20)
        (files / "stored").write_bytes(content)
        binds = [(files, "/files")]
        self.expect(self.client("status"))
        key = self.expect(self.client("put", "/files/stored", binds=binds)).split()
        digest = next(word for word in key if len(word) == 64)
        self.expect(self.client("get", digest, "-o", "/files/loaded", binds=binds))
        self.assertEqual((files / "loaded").read_bytes(), content)
        self.assertEqual(self.stop(), 0, self.log.read_text())

    def test_a_client_in_another_container_reads_the_daemons_memory_in_place(self):
        self.start(PROFILE.compiled(**STRICT))
        traces = self.folder / "traces"
        traces.mkdir()
        binds = [(traces, "/traces")]
        self.expect(self.client("trace", "generate", "--output", "/traces/trace.jsonl", binds=binds))
        replayed = json.loads(self.expect(
            self.client("replay", "/traces/trace.jsonl", "--limit", "50", "--json", binds=binds)))
        self.assertEqual(replayed["wrong_bytes"], 0, replayed)
        self.assertGreater(replayed["hit_tokens"], 0, replayed)
        self.expect(self.client("check"))
        self.assertEqual(self.stop(), 0, self.log.read_text())

    def test_a_client_in_another_process_namespace_has_no_number(self):
        self.start(PROFILE.compiled(**STRICT))
        (client,) = json.loads(self.expect(self.client("status", "--json")))["clients"]
        self.assertEqual((client["pid"], client["uid"]), (0, USER), client)

    @unittest.skipIf(os.geteuid() != 0, "only root can be another user")
    def test_a_user_whom_the_daemon_does_not_see_is_refused(self):
        self.start(PROFILE.compiled(**STRICT))
        self.folder.chmod(0o755)
        terrace = shutil.copy(TERRACE, self.folder)
        done = subprocess.run([terrace, "--socket", self.shared / "terrace.sock", "status"], user=1234, group=1234,
                              extra_groups=[], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 3, done)
        self.assertIn("uid 65534, gid 65534 may not use /run/terrace/terrace.sock; see uids and gids", done.stderr)

    def test_a_system_call_that_the_profile_lacks_is_noticed(self):
        self.start(PROFILE.without("memfd_create").compiled(**STRICT))
        self.assertEqual(self.ended(), 128 + signal.SIGSYS, self.log.read_text())

    def test_an_operator_on_the_machine_reaches_the_daemon_in_the_container(self):
        self.start(PROFILE.compiled(**STRICT))
        environment = dict(os.environ, TERRACE_SOCKET=str(self.shared / "terrace.sock"))
        self.expect(subprocess.run([TERRACE, "status"], env=environment, capture_output=True, text=True, timeout=PATIENCE))
        self.expect(subprocess.run([TERRACE, "shutdown"], env=environment, capture_output=True, text=True, timeout=PATIENCE))
        self.assertEqual(self.ended(), 0, self.log.read_text())

    def test_the_next_container_finds_what_is_on_disk(self):
        joined = "the disk tier of group default joined"  # after it has said that it is ready
        self.start(PROFILE.compiled(**STRICT))
        self.assertTrue(self.log.has(joined))
        files = self.folder / "files"
        files.mkdir()
        (files / "stored").write_bytes(os.urandom(1 << 20))
        stored = self.expect(self.client("put", "/files/stored", binds=[(files, "/files")])).split()
        digest = next(word for word in stored if len(word) == 64)
        self.assertEqual(self.stop(), 0, self.log.read_text())
        (self.shared / "notify").unlink()
        self.start(PROFILE.compiled(**STRICT))
        self.assertTrue(self.log.has(joined))
        self.expect(self.client("get", digest, "-o", "/files/loaded", binds=[(files, "/files")]))
        self.assertEqual((files / "loaded").read_bytes(), (files / "stored").read_bytes())
        self.assertEqual(self.stop(), 0, self.log.read_text())

    def test_a_profile_without_io_uring_ends_the_daemon_with_a_reason(self):
        self.start(PROFILE.without(*IO_URING).compiled())
        self.assertEqual(self.ended(), 1, self.log.read_text())
        for part in ("io_uring is not available", "io_uring_setup", "seccomp profile"):
            self.assertIn(part, self.log.read_text())

    def test_a_lower_limit_on_locked_memory_costs_registered_buffers_alone(self):
        def lower():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 10, 64 << 10))

        self.start(PROFILE.compiled(**STRICT), limits=lower)
        self.assertTrue(self.log.has("memlock 64.0 KiB"))
        self.expect(self.client("status"))
        self.assertEqual(self.stop(), 0, self.log.read_text())

    @unittest.skipIf(os.geteuid() != 0, "only root can give folders away")
    def test_the_pods_first_container_gives_the_daemon_its_folders_and_its_profile(self):
        configuration, workload = yaml.safe_load_all(render_chart.manifests())
        prepare = workload["spec"]["template"]["spec"]["initContainers"][0]
        places = {mount["mountPath"]: self.folder / mount["name"] for mount in prepare["volumeMounts"]}
        for place in places.values():
            place.mkdir()
        for name, text in configuration["data"].items():
            (places["/etc/terrace"] / name).write_text(text)
        rights = [f"CAP_{one}" for one in prepare["securityContext"]["capabilities"]["add"]]
        words = container(["--unshare-pid", "--unshare-ipc", "--unshare-net"], [(out, into) for into, out in places.items()],
                          *(word for one in rights for word in ("--cap-add", one)))
        done = subprocess.run([*words, *prepare["command"]], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        for folder in ("/run/terrace", "/var/lib/terrace"):
            self.assertEqual((places[folder].stat().st_uid, places[folder].stat().st_gid), (USER, USER))
        (profile,) = places["/seccomp"].iterdir()
        self.assertEqual(seccomp.Profile(profile).rules, PROFILE.rules)

    def test_the_profile_denies_new_namespaces(self):
        done = subprocess.run([*sandbox([], "--seccomp", str(file := PROFILE.compiled())), "/usr/bin/unshare", "--user",
                               "/usr/bin/true"], pass_fds=(file,), capture_output=True, text=True, timeout=PATIENCE)
        os.close(file)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unshare", done.stderr)


if __name__ == "__main__":
    reason = why_no_containers()
    if reason:
        print(reason)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
