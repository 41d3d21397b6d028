#!/usr/bin/env python3
"""The image of packaging/Containerfile under podman, with the options of docs/containers.md: its entry point, its health check,
its user and its folders. Clients on the machine use the daemon in it over the volume of the socket.

    image_test.py TERRACED TERRACE

The image here has the programs of this build and the machine's libraries instead of a Debian release and the package, which
take minutes; what follows the package in the Containerfile is the same. All that podman keeps is in a folder of this test.
Exit code 77 with a reason: this machine has no podman, or podman runs no container here.
"""

import io
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

from container_test import Log, PATIENCE, ROOT, TERRACE, TERRACED, USER

PACKAGING = ROOT / "packaging"
INSTALLED = "&& install -d -o terrace -g terrace -m 0700 /var/lib/terrace\n"  # the end of what the package's stage runs
DIRECTORIES = {"run/terrace": 0o755, "var/lib/terrace": 0o700}  # of the user
SMALLER = (("1GiB", "64MiB"), ("4GiB", "64MiB"))


def documented(program):
    """The words of this command of podman in docs/containers.md."""
    text = (ROOT / "docs/containers.md").read_text().replace("\\\n", " ")
    return shlex.split(re.search(rf"^podman ({program} .*)$", text, re.MULTILINE)[1])


def allowed(words):
    """The words of a podman run with limits that this machine can give, for it may lack CAP_SYS_RESOURCE; podman sets those of
    files and processes in any case."""
    wanted = {"memlock": -1, "nofile": 1 << 20, "nproc": 1000}
    rest = []
    for word in words:
        found = re.fullmatch(r"(memlock|nofile)=(-?\d+)", word)
        if found:
            wanted[found[1]] = int(found[2])
            rest.pop()  # --ulimit
        else:
            rest.append(word)
    limits = []
    for name, value in wanted.items():
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
        if hard != resource.RLIM_INFINITY and not 0 <= value <= hard:
            value = hard
        limits += ["--ulimit", f"{name}={value}:{value}"]
    return [rest[0], *limits, *rest[1:]]


def files_of_the_image():
    """The machine's files that the programs need, by their place in the image."""
    programs = {"usr/bin/terraced": TERRACED, "usr/bin/terrace": TERRACE, "usr/bin/sh": pathlib.Path("/bin/sh").resolve()}
    files = dict(programs)
    for program in programs.values():
        for library in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", program], capture_output=True, text=True).stdout):
            files[library[1:]] = pathlib.Path(library).resolve()
    return files


def root_of_the_image(path):
    """Writes an archive in the place of Debian with the package installed."""
    with tarfile.open(path, "w") as archive:
        for place, file in files_of_the_image().items():
            one = archive.gettarinfo(file, place)
            one.uid, one.gid, one.mode = 0, 0, 0o755
            with open(file, "rb") as content:
                archive.addfile(one, content)
        for place in ("tmp", "proc", "sys", "dev", "etc", "bin", *DIRECTORIES):
            one = tarfile.TarInfo(place)
            one.type, one.mode = tarfile.DIRTYPE, DIRECTORIES.get(place, 0o755)
            one.uid = one.gid = USER if place in DIRECTORIES else 0
            archive.addfile(one)
        users = f"root:x:0:0::/:/bin/sh\nterrace:x:{USER}:{USER}::/var/lib/terrace:/bin/sh\n".encode()
        one = tarfile.TarInfo("etc/passwd")
        one.size = len(users)
        archive.addfile(one, io.BytesIO(users))
        one = tarfile.TarInfo("bin/sh")
        one.type, one.linkname = tarfile.SYMTYPE, "/usr/bin/sh"
        archive.addfile(one)


class Podman:
    """Podman with its storage in a folder of its own."""

    def __init__(self, folder):
        self.global_options = ["podman", "--root", str(folder / "storage"), "--runroot", str(folder / "run")]

    def words(self, *words):
        return [*self.global_options, *(str(word) for word in words)]

    def run(self, *words):
        return subprocess.run(self.words(*words), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)

    def choose_runtime(self):
        """Takes a runtime that works here: crun, the default of most, knows no machines with both versions of cgroups."""
        errors = []
        for runtime in ("crun", "runc"):
            if shutil.which(runtime) is None:
                continue
            tried = self.run("--runtime", runtime, *allowed(["run", "--rm", "--network", "none", "--entrypoint", "terraced",
                                                            "--memory", "2g", "terrace:0.1.0", "--version"]))
            if tried.returncode == 0:
                self.global_options += ["--runtime", runtime]
                return None
            errors.append(tried.stderr.strip().replace("\n", " "))
        return "podman runs no container here: " + ("; ".join(errors) or "there is neither crun nor runc")


    def close(self):
        """Leaves nothing mounted, so that the folder can be removed. `podman system reset` is not asked: it also removes
        networks, which are the machine's."""
        self.run("rm", "--all", "--force")
        self.run("rmi", "--all", "--force")


def make_image(podman, folder):
    """Builds it of the archive and the end of the Containerfile; podman's error, or None."""
    root_of_the_image(folder / "root.tar")
    text = (PACKAGING / "Containerfile").read_text()
    context = folder / "context"
    shutil.copytree(PACKAGING, context / "packaging")
    (folder / "root.tar").rename(context / "root.tar")
    (context / "Containerfile").write_text("FROM scratch\nADD root.tar /\n" + text[text.index(INSTALLED) + len(INSTALLED):])
    built = podman.run("build", "--isolation", "chroot", "--network", "host", *documented("build")[1:-3],
                       "--file", context / "Containerfile", context)
    return None if built.returncode == 0 else built.stderr.strip()


class Image(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="terrace-image-")))
        text = (PACKAGING / "terraced.toml").read_text()
        for one, other in SMALLER:
            self.assertIn(one, text)
            text = text.replace(one, other)
        self.config = self.folder / "terraced.toml"
        self.config.write_text(text)

    def start(self, seccomp=("--security-opt", "seccomp=packaging/seccomp.json")):
        """Runs the container as docs/containers.md says, with a smaller configuration; attached, so its log is ours."""
        *words, image = allowed(documented("run"))
        at = words.index("seccomp=packaging/seccomp.json")
        words[at - 1:at + 1] = seccomp
        self.running = subprocess.Popen(
            PODMAN.words(*words, "--network", "none", "--volume", f"{self.config}:/etc/terrace/terraced.toml:ro", image),
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        self.log = Log(self.running.stdout)
        self.addCleanup(self.remove)

    def remove(self):
        PODMAN.run("rm", "--force", "terrace")
        PODMAN.run("volume", "rm", "--force", "terrace-socket", "terrace-disk")
        self.ended()

    def ended(self):
        """The exit code of the container's first process."""
        code = self.running.wait(PATIENCE)
        self.log.reader.join(PATIENCE)
        return code

    def serve(self):
        self.start()
        self.assertTrue(self.log.has("the disk tier of group default joined"), self.log.read_text())

    def expect(self, done, code=0):
        self.assertEqual(done.returncode, code, f"{done.args}\n{done.stdout}{done.stderr}\n{self.log.read_text()}")
        return done.stdout

    def client(self, *words):
        """A command of this machine, over the volume of the socket."""
        folder = self.expect(PODMAN.run("volume", "inspect", "--format", "{{.Mountpoint}}", "terrace-socket")).strip()
        return self.expect(subprocess.run([TERRACE, "--socket", f"{folder}/terrace.sock", *words], capture_output=True,
                                          text=True, timeout=PATIENCE))

    def stop(self):
        self.expect(PODMAN.run("stop", "terrace"))
        self.assertEqual(self.ended(), 0, self.log.read_text())

    def put(self, content):
        (self.folder / "stored").write_bytes(content)
        return next(word for word in self.client("put", str(self.folder / "stored")).split() if len(word) == 64)

    def get(self, digest):
        self.client("get", digest, "-o", str(self.folder / "loaded"))
        return (self.folder / "loaded").read_bytes()

    def test_a_client_outside_stores_and_loads_and_podman_stops_the_daemon_in_order(self):
        self.serve()
        content = os.urandom(3 << 20)
        self.assertEqual(self.get(self.put(content)), content)
        self.stop()

    def test_the_next_start_of_the_container_finds_what_is_on_its_volume(self):
        self.serve()
        content = os.urandom(1 << 20)
        digest = self.put(content)
        self.stop()
        self.expect(PODMAN.run("rm", "terrace"))
        self.serve()
        self.assertEqual(self.get(digest), content)
        self.stop()

    def test_its_health_check_and_commands_in_it_reach_the_daemon(self):
        self.serve()
        self.expect(PODMAN.run("healthcheck", "run", "terrace"))
        self.assertIn("default", self.expect(PODMAN.run(*documented("exec"))))
        self.client("shutdown", "--yes")
        self.assertEqual(self.ended(), 0, self.log.read_text())

    def test_it_has_no_rights_and_can_write_to_its_two_folders(self):
        self.serve()
        (daemon,) = json.loads(self.expect(PODMAN.run("inspect", "terrace")))
        status = dict(line.split(":\t", 1) for line in
                      pathlib.Path(f"/proc/{daemon['State']['Pid']}/status").read_text().splitlines() if ":\t" in line)
        self.assertEqual(status["Uid"].split(), [str(USER)] * 4)
        self.assertEqual(status["Gid"].split(), [str(USER)] * 4)
        self.assertEqual((int(status["CapEff"], 16), int(status["CapBnd"], 16)), (0, 0))
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        mounts = [line.split() for line in pathlib.Path(f"/proc/{daemon['State']['Pid']}/mountinfo").read_text().splitlines()]
        self.assertEqual([mount[5].split(",")[0] for mount in mounts if mount[4] == "/"], ["ro"])
        for place in "/run/terrace", "/var/lib/terrace":
            self.expect(PODMAN.run("exec", "terrace", "sh", "-c", f": > {place}/file"))

    def test_the_log_begins_with_what_the_container_lacks(self):
        self.config.write_text(self.config.read_text().replace("/var/lib/terrace", "/var/lib/none"))
        self.start()
        self.assertTrue(self.log.has("listens on /run/terrace/terrace.sock"), self.log.read_text())
        finding, _, rest = self.log.read_text().partition("-> mount its device, or make the directory")
        self.assertIn('disk.path names "/var/lib/none", which does not exist', finding)
        self.assertIn("listens on", rest)
        self.stop()

    def test_podmans_own_profile_ends_the_daemon_with_a_reason(self):
        self.start(seccomp=())
        self.assertEqual(self.ended(), 1, self.log.read_text())
        self.assertIn("io_uring is not available: io_uring_setup failed", self.log.read_text())


if __name__ == "__main__":
    if shutil.which("podman") is None:
        print("podman is not installed (packages podman and runc): the image is not run")
        sys.exit(77)
    if os.geteuid() != 0:
        print("the image is run as root, whose containers have no users of their own")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="tpod-", dir="/var/tmp") as name:
        PODMAN = Podman(pathlib.Path(name))
        try:
            why = make_image(PODMAN, pathlib.Path(name)) or PODMAN.choose_runtime()
            if why:
                print(f"the image cannot be built or run here: {why}")
                sys.exit(77)
            unittest.main(argv=sys.argv[:1])
        finally:
            PODMAN.close()
