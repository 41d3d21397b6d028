"""Virtual environments from the package index, above all that of an engine: made once for each list of packages, and kept
outside of the tree."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
DISK_BYTES = 7 << 30  # while it is made; 3.3 GiB stay
MEMORY_BYTES = 3 << 30  # of one engine with its model, its caches and a daemon
SECONDS = 1200  # to download 1.1 GiB


class Unavailable(Exception):
    """Why something cannot be installed or run here."""


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "terrace"


def python_of(*lists: str) -> Path:
    """The interpreter of an environment with the packages of these lists; makes it if it is not there. Raises Unavailable."""
    check_memory()
    parts = [sys.version.split()[0], (HERE / "cuda_stand_ins.py").read_text(), *((HERE / name).read_text() for name in lists)]
    return made_once(f"engine-{Path(lists[-1]).stem}", "\n".join(parts), lambda folder: make(folder, lists)) / "bin/python"


def made_once(name: str, content: str, make: Callable[[Path], None]) -> Path:
    """A folder in the cache that `make` fills, once for each `content`. Raises Unavailable if `make` does."""
    folder = cache_folder() / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run of the tests may be making it
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            try:
                make(folder)
            except Unavailable:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            (folder / "complete").touch()
    return folder


def make_environment(folder: Path) -> None:
    command(sys.executable, "-m", "venv", folder, because="this Python makes no virtual environments (Debian: python3-venv)")


def install(folder: Path, requirements: Path) -> None:
    """Installs the packages of a list, which has all that they need, into an environment."""
    command(folder / "bin/pip", "install", "--quiet", "--no-compile", "--no-deps", "--retries", "1", "-r", requirements,
            because=f"the packages of {requirements.parent.name}/{requirements.name} cannot be installed")


def with_engines() -> Path:
    """Of an environment with all engines, or with vLLM and LMCache. Raises Unavailable."""
    try:
        return python_of("torch.txt", "vllm.txt", "lmcache.txt", "sglang.txt")
    except Unavailable as reason:
        print(f"vLLM and LMCache are tried without SGLang: {reason}", flush=True)
        return python_of("torch.txt", "vllm.txt", "lmcache.txt")


def newest_vllm(python: Path) -> Path | None:
    """A folder with the newest release for GPUs, whose modules can be imported by `python`, which has all else that they need,
    but not run. None where it cannot be installed."""
    def install_alone(folder: Path) -> None:
        command(python, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--retries", "1",
                "--target", folder, "-r", HERE / "newest.txt", because="the newest vLLM cannot be installed")
        for library in folder.glob("**/*.so"):
            library.unlink()  # they need a GPU's driver

    try:
        return made_once("vllm-newest", (HERE / "newest.txt").read_text(), install_alone)
    except Unavailable as reason:
        print(f"interfaces are compared with the vLLM that is run alone: {reason}", flush=True)
        return None


def check_memory() -> None:
    with open("/proc/meminfo") as lines:
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    if free < MEMORY_BYTES:
        raise Unavailable(f"expected {MEMORY_BYTES >> 30} GiB of available memory, got {free / (1 << 30):.1f}")


def make(folder: Path, lists: tuple[str, ...]) -> None:
    free = shutil.disk_usage(folder.parent).free
    if free < DISK_BYTES:
        raise Unavailable(f"expected {DISK_BYTES >> 30} GiB free at {folder.parent}, got {free / (1 << 30):.1f}")
    make_environment(folder)
    for name in lists:
        install(folder, HERE / name)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    command(sys.executable, HERE / "cuda_stand_ins.py", site_packages, because="CUDA's libraries have no stand-ins")
    modules = ", ".join(Path(name).stem for name in lists)
    command(folder / "bin/python", "-c", f"import {modules}", because="the installed engines cannot be imported")


def command(*words: object, because: str) -> None:
    try:
        done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{because}: {words[0]} took more than {SECONDS} s") from None
    if done.returncode != 0:
        print(done.stdout, flush=True)
        raise Unavailable(f"{because} (see above)")


if __name__ == "__main__":
    print(python_of(*sys.argv[1:]))
