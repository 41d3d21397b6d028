#!/usr/bin/env python3
"""What tools/bundle packs runs elsewhere, with the C library of the machine and nothing else from it: the daemon, a workload
and gpu-report.

    bundle_test.py BUILD_FOLDER
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from run_workload import Daemon  # noqa: E402

CONFIGURATION = "[host]\nbytes = \"64MiB\"\n[disk]\nbytes = 0\n"
OF_THE_MACHINE = re.compile(r"(ld-linux.*|lib(c|m|mvec|dl|pthread|rt|resolv|util|anl))\.so\.\d+")
# As on a machine where nobody has set anything.
PLAIN = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent"}


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, text=True, stdin=subprocess.DEVNULL,
                          **{"env": PLAIN, **options})


def check_libraries(bundle):
    programs = [program for folder in ("bin", "simulated", "simulated_cufile")
                for program in sorted((bundle / folder).iterdir())]
    assert [program.name for program in programs] == [
        "terrace", "terrace_bench", "terraced", "test_e2e", "test_gpu", "test_reference_engine", "libcuda.so.1",
        "libcufile.so.0"]
    for program in programs:
        out = run("ldd", program, capture_output=True).stdout
        found = re.findall(r"^\s*(\S+) => (.*?)(?: \(0x[0-9a-f]+\))?$", out, re.M)
        assert found, out
        for name, path in found:
            inside = bundle in pathlib.Path(path).resolve().parents
            assert inside != bool(OF_THE_MACHINE.fullmatch(name)), f"{program.name}: {name} is {path}"
    for library in (bundle / "lib").iterdir():
        assert not OF_THE_MACHINE.fullmatch(library.name) and "nvidia" not in library.name, library
        assert not library.name.startswith("libcuda"), library


def check_workload(bundle, folder):
    configuration = folder / "terraced.toml"
    configuration.write_text(CONFIGURATION)
    for program in ("terraced", "terrace"):
        run(bundle / "bin" / program, "--version", stdout=subprocess.DEVNULL)
    trace = folder / "trace.jsonl"
    terrace = bundle / "bin" / "terrace"
    run(terrace, "trace", "generate", "--output", trace, stdout=subprocess.DEVNULL)
    daemon = Daemon(bundle / "bin" / "terraced", configuration, folder)
    try:
        assert daemon.wait_until_ready(), daemon.log_path.read_text()
        out = run(terrace, "--socket", daemon.socket_path, "replay", trace, "--limit", 20, capture_output=True).stdout
        assert re.search(r"wrong bytes +0\b", out), out
    finally:
        assert daemon.stop() == 0, daemon.log_path.read_text()


def check_report(bundle, folder):
    output = folder / "report"
    done = subprocess.run([bundle / "gpu-report", "--quick", output], env=PLAIN, cwd=folder, text=True, capture_output=True)
    assert done.returncode == 0, (done.stdout, done.stderr)
    report = json.loads((output / "report.json").read_text())
    assert report["mode"] in ("real", "simulated"), report
    assert ("NO GPU" in done.stdout) == (report["mode"] == "simulated"), done.stdout
    assert report["tests"]["failed"] == 0 and report["tests"]["passed"] > 0, report
    assert [line["name"].startswith("device_overhead") for line in report["benchmarks"]] == [True, True], report
    table = (output / "report.txt").read_text()
    assert all(line["name"] in table for line in report["benchmarks"]), table
    # Its tests use the driver of the bundle, not that of the build folder, and a failure is reported as one.
    (bundle / "simulated" / "libcuda.so.1").unlink()
    done = subprocess.run([bundle / "gpu-report", "--quick", output], env=PLAIN, text=True, capture_output=True)
    if report["mode"] == "simulated":
        assert done.returncode == 1, done.stdout
        assert json.loads((output / "report.json").read_text())["tests"]["failed"] > 0, done.stdout


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("patchelf"):
        print("patchelf is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="terrace-bundle-") as name:
        folder = pathlib.Path(name).resolve()
        made = folder / "made" / "bundle"
        made.parent.mkdir()
        run(ROOT / "tools" / "bundle", "--no-build", "--build", build, made, stdout=subprocess.DEVNULL, env=os.environ)
        shutil.rmtree(made)
        made.mkdir()
        (made / "own").touch()
        refused = subprocess.run([ROOT / "tools" / "bundle", "--no-build", "--build", build, made], text=True,
                                 capture_output=True)
        assert refused.returncode == 2 and "is no bundle; it is not replaced" in refused.stderr, refused
        shutil.rmtree(made)
        elsewhere = folder / "elsewhere"
        with tarfile.open(f"{made}.tar") as packed:
            packed.extractall(elsewhere)
        bundle = elsewhere / "bundle"
        check_libraries(bundle)
        check_workload(bundle, folder)
        check_report(bundle, folder)


if __name__ == "__main__":
    main()
