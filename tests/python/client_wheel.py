"""Builds a wheel of clients/python, for the test programs that install one."""

import atexit
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parent.parent / "clients/python"
PYTHON = os.environ.get("TERRACE_PYTHON", sys.executable)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command, **settings):
    """Runs a command whose output is shown if it fails."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **settings)
    if done.returncode != 0:
        print(done.stdout, flush=True)
    return done


def tools(build):
    """Returns the virtual environment to build and check with; it is made once for each list of requirements."""
    requirements = HERE / "requirements.txt"
    version = run(PYTHON, "--version").stdout
    name = hashlib.sha256((requirements.read_text() + version).encode()).hexdigest()[:12]
    folder = build / f"tools-{name}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        if run(PYTHON, "-m", "venv", folder).returncode != 0:
            skip("this Python makes no virtual environments; Debian's package is python3-venv")
        pip = run(folder / "bin/pip", "install", "--quiet", "--retries", "1", "-r", requirements)
        if pip.returncode != 0:
            skip("the package index cannot be reached, from which meson-python, nanobind and mypy come (see above)")
        (folder / "complete").touch()
    return folder


def wheel(build, using):
    """Returns the wheel in a folder of this process, which ends with it: other processes build theirs in `build`."""
    wheels = Path(tempfile.mkdtemp(prefix="terrace-wheel-"))
    atexit.register(shutil.rmtree, wheels, ignore_errors=True)
    # The build folder is kept, so that only changes are compiled.
    environment = {**os.environ, "PATH": f"{using / 'bin'}:{os.environ['PATH']}"}
    done = run(using / "bin/pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
               f"--config-settings=build-dir={build / 'wheel'}", "--config-settings=setup-args=-Dwerror=true",
               "--wheel-dir", wheels, CLIENT, env=environment)
    if done.returncode != 0:
        sys.exit("building the wheel failed")
    (made,) = wheels.glob("*.whl")
    return made


def make():
    """Returns the environment of the tools, and the wheel. Ends the program with 77 if it cannot be built."""
    build = Path(os.environ.get("TERRACE_PYTHON_BUILD", HERE.parent.parent / "build/python")).resolve()
    build.mkdir(parents=True, exist_ok=True)
    include = run(PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('include'))").stdout.strip()
    if not Path(include, "Python.h").exists():
        skip("Python's headers are missing; Debian's package is python3-dev")
    with open(build / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        using = tools(build)
        return build, using, wheel(build, using)
