"""What a user tries first: `./run --engine vllm`, and `terrace explain` of a text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import terrace
from daemon import PATIENCE, Daemon
from tokenizers import Tokenizer, models, pre_tokenizers, processors

ROOT = Path(__file__).resolve().parents[2]


SPEC = terrace.SpaceSpec(model="m", dtype="u8", layout="l", chunk_tokens=4, hash_block_tokens=4,
                         pools=[terrace.Pool("kv", object_bytes=4096)])


class Text(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="terrace-text-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        words = {word: number for number, word in enumerate(["[UNK]", "[BOS]", "the", "cat", "sat", "on", "a", "mat"])}
        tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.post_processor = processors.TemplateProcessing(single="[BOS] $A", special_tokens=[("[BOS]", 1)])
        tokenizer.save(str(self.folder / "tokenizer.json"))
        self.server = Daemon()
        self.addCleanup(self.server.stop)
        self.daemon = terrace.connect(self.server.socket, timeout=PATIENCE)
        self.addCleanup(self.daemon.close)

    def explain(self, text: str, *more: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "prompt.txt").write_text(text)
        command = Path(os.environ["TERRACED"]).resolve().parents[2] / "src/cli/terrace"
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run([command, "--socket", self.server.socket, "explain", "--space", "1", "--text", self.folder / "prompt.txt",
                               "--json", *more], env={**os.environ, "PATH": path}, text=True, capture_output=True, timeout=PATIENCE)

    def test_terrace_explains_a_text_with_the_models_tokenizer(self) -> None:
        space = self.daemon.open_space(SPEC, timeout=PATIENCE)
        memory = terrace.Memory(4096)
        with self.daemon.register_region(memory, timeout=PATIENCE) as region:
            self.daemon.store(space, [1, 2, 3, 4], region, [(0, 4096)], timeout=PATIENCE)  # [BOS] the cat sat
        for tokenizer in (str(self.folder), str(self.folder / "tokenizer.json")):
            done = self.explain("the cat sat on a mat the cat", "--tokenizer", tokenizer)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = json.loads(done.stdout)
            self.assertEqual((said["requested_chunks"], said["found_chunks"]), (2, 1))
        bare = json.loads(self.explain("the cat sat on", "--tokenizer", str(self.folder), "--no-special-tokens").stdout)
        self.assertEqual((bare["requested_chunks"], bare["found_chunks"]), (1, 0))

    def test_a_tokenizer_that_is_not_there_is_named(self) -> None:
        self.daemon.open_space(SPEC, timeout=PATIENCE)
        done = self.explain("the cat", "--tokenizer", str(self.folder / "nothing"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected a model's folder, a tokenizer.json or a name of Hugging Face", done.stderr)
        (self.folder / "tokenizer.json").write_text("{}")
        done = self.explain("the cat", "--tokenizer", str(self.folder))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)


class Trial(unittest.TestCase):
    def test_the_second_conversation_finds_what_the_first_has_computed(self) -> None:
        build = Path(os.environ["TERRACED"]).resolve().parents[2]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        # The interpreter that has made the engine's environment.
        python = os.environ.get("TERRACE_PYTHON", "python3")
        done = subprocess.run([python, ROOT / "tools/run_engine.py", "--build", build], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if "preparing failed" in done.stdout:
            self.skipTest(done.stdout[-500:])
        self.assertEqual(done.returncode, 0, done.stdout)
        found = re.search(r"^hit +(\d+)% of the second prompt came from Terrace, ([\d.]+) MiB of KV$", done.stdout, re.MULTILINE)
        assert found, done.stdout
        self.assertGreater(int(found[1]), 50)
        self.assertGreater(float(found[2]), 0)
        self.assertIn("of them not computed", done.stdout)


if __name__ == "__main__":
    unittest.main()
