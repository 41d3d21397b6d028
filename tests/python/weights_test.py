"""The weights that KV comes from: files, adapters and the engines' configurations."""

from __future__ import annotations

import enum
import json
import logging
import os
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from daemon import Daemon
from terrace import Memory, Pool, SpaceSpec, options, weights
from terrace.link import HostPool
from terrace.sglang import factors as sglang
from terrace.vllm import factors
from terrace.vllm.adapters import Adapters
from terrace.vllm.cache import PoolCache
from terrace.weights import CONTENT_BYTES, Unidentified, identity_of

LARGE = CONTENT_BYTES + (1 << 20)
LOG = "terrace.weights-test"


def keep_times(path: Path, content: bytes) -> None:
    """Replaces the content of a file as `cp -p` or a package manager does."""
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def safetensors(header: dict[str, Any], size: int = LARGE) -> bytes:
    text = json.dumps(header).encode()
    return (struct.pack("<Q", len(text)) + text).ljust(size, b"\1")


class Folders(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.model = self.folder("model")

    def folder(self, name: str, content: bytes = b"weights") -> Path:
        made = self.root / name
        made.mkdir()
        (made / "config.json").write_text("{}")
        (made / "model.safetensors").write_bytes(content)
        return made


class Files(Folders):
    def test_equal_files_are_equal_weights(self) -> None:
        self.assertEqual(identity_of(str(self.model)).digest, identity_of(str(self.folder("copy"))).digest)

    def test_small_files_are_known_by_their_content(self) -> None:
        for name in ("model.safetensors", "config.json"):
            first = identity_of(str(self.model)).digest
            keep_times(self.model / name, b"swapped")
            self.assertNotEqual(identity_of(str(self.model)).digest, first, name)

    def test_what_lies_beside_the_weights_matters_unless_it_is_the_tokenizers(self) -> None:
        first = identity_of(str(self.model)).digest
        for name in ("tokenizer.json", "tokenizer_config.json", "README.md", ".gitattributes", "generation_config.json", "vocab.txt"):
            (self.model / name).write_text("text")
            self.assertEqual(identity_of(str(self.model)).digest, first, name)
        for name in ("model.safetensors.index.json", "quantize_config.json", "hf_quant_config.json", "modeling.py", "vocab.bin"):
            before = identity_of(str(self.model)).digest
            (self.model / name).write_text("text")
            self.assertNotEqual(identity_of(str(self.model)).digest, before, name)

    def test_large_files_are_known_by_header_size_end_and_time(self) -> None:
        path = self.model / "model.safetensors"
        path.write_bytes(safetensors({"a": 1}))
        os.utime(path, ns=(1, 1))
        seen = {identity_of(str(self.model)).digest}
        for content in (safetensors({"a": 2}), safetensors({"a": 1}, LARGE + 1), safetensors({"a": 1})[:-1] + b"\2"):
            keep_times(path, content)
            seen.add(identity_of(str(self.model)).digest)
        keep_times(path, safetensors({"a": 1}))
        self.assertIn(identity_of(str(self.model)).digest, seen)
        os.utime(path, ns=(2, 2))
        seen.add(identity_of(str(self.model)).digest)
        self.assertEqual(len(seen), 5)

    def test_a_long_header_counts_to_its_end(self) -> None:
        path = self.model / "model.safetensors"
        seen = set()
        for last in "ab":
            path.write_bytes(safetensors({"padding": "x" * (1 << 20), "last": last}))
            os.utime(path, ns=(1, 1))
            seen.add(identity_of(str(self.model)).digest)
        self.assertEqual(len(seen), 2)

    def test_files_are_read_again_only_when_they_have_changed(self) -> None:
        identity_of(str(self.model))
        with mock.patch.object(weights, "_read", side_effect=AssertionError("it was read again")):
            identity_of(str(self.model))
            (self.model / "config.json").write_text("[]")
            with self.assertRaises(AssertionError):
                identity_of(str(self.model))

    def test_a_single_file_is_a_model_too(self) -> None:
        path = self.root / "model.gguf"
        path.write_bytes(b"one")
        first = identity_of(str(path)).digest
        keep_times(path, b"two")
        self.assertNotEqual(identity_of(str(path)).digest, first)

    def test_when_a_file_changed_last_is_told(self) -> None:
        before = time.time_ns() - 10**9
        os.utime(self.model / "model.safetensors", ns=(1, 1))
        self.assertGreater(identity_of(str(self.model)).changed, before, "a time that was set does not hide a change")

    def test_what_cannot_be_looked_at_says_why(self) -> None:
        (self.root / "empty").mkdir()
        (self.root / "empty/config.json").write_text("{}")
        os.mkfifo(self.root / "pipe.bin")
        cases = {"owner/model": "owner/model has no files on this machine", "": "the model has no files", "s3://bucket/m": "has no files",
                 str(self.root / "empty"): "expected files of weights", str(self.root / "pipe.bin"): "expected a file"}
        for model, why in cases.items():
            with self.subTest(model=model), self.assertRaisesRegex(Unidentified, why):
                identity_of(model, cache=str(self.root))

    def test_files_that_cannot_be_read_say_why(self) -> None:
        with mock.patch.object(weights.os, "fstat", side_effect=OSError(5, "Input/output error")):
            with self.assertRaisesRegex(Unidentified, "model cannot be read: Input/output error"):
                identity_of(str(self.model))

    def test_paths_need_not_be_text(self) -> None:
        odd = os.fsdecode(os.fsencode(self.root) + b"/caf\xe9")
        os.rename(self.model, odd)
        self.assertTrue(identity_of(odd).digest)
        for name in (odd, "m" * 300):
            self.assertRegex(weights.model_name(name), "^[0-9a-f]{64}$")
        self.assertEqual(weights.model_name("owner/modèle"), "owner/modèle")
        with self.assertRaisesRegex(Unidentified, r"caf\\udce9 has no files"):
            identity_of("caf\udce9")


class HubCache(Folders):
    def setUp(self) -> None:
        super().setUp()
        self.hub = self.root / "models--owner--model"
        for folder in ("blobs", "refs", "snapshots/c1", "snapshots/c2"):
            (self.hub / folder).mkdir(parents=True)
        for commit, blob in (("c1", "a" * 64), ("c2", "b" * 64)):
            (self.hub / "blobs" / blob).write_bytes(b"x")
            (self.hub / "snapshots" / commit / "model.safetensors").symlink_to(f"../../blobs/{blob}")
        (self.hub / "refs/main").write_text("c1\n")

    def test_a_name_is_looked_up_in_the_cache_of_hugging_face(self) -> None:
        first = identity_of("owner/model", cache=str(self.root))
        self.assertEqual(first.changed, 0, "its files are named after their content")
        self.assertEqual(identity_of("owner/model", "c1", str(self.root)), first)
        second = identity_of("owner/model", "c2", str(self.root))
        self.assertNotEqual(second.digest, first.digest)
        (self.hub / "refs/main").write_text("c2")
        self.assertEqual(identity_of("owner/model", cache=str(self.root)), second)
        with self.assertRaises(Unidentified):
            identity_of("owner/model", "c3", str(self.root))

    def test_the_cache_is_where_hugging_face_has_it(self) -> None:
        for variable, value in (("HF_HUB_CACHE", self.root), ("HUGGINGFACE_HUB_CACHE", self.root), ("HF_HOME", self.root / "home"),
                                ("XDG_CACHE_HOME", self.root / "xdg")):
            if value != self.root:
                hub = value / ("hub" if variable == "HF_HOME" else "huggingface/hub")
                hub.parent.mkdir(parents=True)
                hub.symlink_to(self.root)
            with mock.patch.dict(os.environ, {variable: str(value)}, clear=True):
                self.assertTrue(identity_of("owner/model").digest, variable)


class AdapterTags(Folders):
    def setUp(self) -> None:
        super().setUp()
        os.rename(self.model / "model.safetensors", self.model / "adapter_model.safetensors")
        self.log = logging.getLogger(LOG)

    def adapters(self, engine: str = "e", factors: Any = None, started: int = 2**62) -> Adapters:
        return Adapters(factors, engine, self.log, started=started)

    def request(self, name: str = "support", number: int = 1, path: str = "") -> Any:
        return SimpleNamespace(lora_name=name, lora_int_id=number, lora_path=path or str(self.model))

    def test_a_request_without_one_has_no_tag(self) -> None:
        self.assertEqual(self.adapters().tags(None), ())

    def test_equal_files_have_one_tag_in_all_engines_and_others_another(self) -> None:
        first = self.adapters().tags(self.request())
        self.assertEqual(self.adapters("another").tags(self.request("renamed", 7)), first)
        keep_times(self.model / "adapter_model.safetensors", b"swapped")
        second = self.adapters().tags(self.request())
        self.assertNotEqual(second, first)
        keep_times(self.model / "config.json", b'{"r":8}')
        self.assertNotIn(self.adapters().tags(self.request()), (first, second))
        self.assertNotEqual(self.adapters(factors=[["lora_dtype", "float32"]]).tags(self.request()), self.adapters().tags(self.request()))

    def test_files_that_change_under_a_running_engine_are_not_cached_any_more(self) -> None:
        adapters, other = self.adapters(), self.request("other", 2, str(self.folder("other")))
        self.assertTrue(adapters.tags(self.request()))
        keep_times(self.model / "adapter_model.safetensors", b"swapped")
        with self.assertLogs(LOG, "WARNING") as log:
            self.assertIsNone(adapters.tags(self.request()))
            self.assertIsNone(adapters.tags(self.request()))
        self.assertEqual(len(log.output), 1)
        self.assertIn("'support' is not cached until the engine is started again", log.output[0])
        keep_times(self.model / "adapter_model.safetensors", b"weights")
        self.assertIsNone(adapters.tags(self.request()), "the engine may have loaded what was there meanwhile")
        self.assertTrue(adapters.tags(other))
        self.assertTrue(adapters.tags(self.request(number=3)), "an adapter that is loaded anew is another one")

    def test_what_is_younger_than_the_engine_is_its_own(self) -> None:
        """The engine may have loaded the earlier files."""
        with self.assertLogs(LOG, "WARNING") as log:
            tags = [self.adapters(engine, started=0).tags(self.request()) for engine in ("one", "two")]
        self.assertEqual(len({*tags, self.adapters().tags(self.request())}), 3)
        self.assertIn("not shared beyond this engine: its files are younger than this engine", log.output[0])

    def test_what_has_no_files_is_its_own(self) -> None:
        adapters = self.adapters()
        with self.assertLogs(LOG, "WARNING") as log:
            first = adapters.tags(self.request(path="memory://1"))
            self.assertEqual(adapters.tags(self.request(path="memory://1")), first)
            others = [adapters.tags(self.request(number=2, path="memory://1")), self.adapters("f").tags(self.request(path="memory://1"))]
        self.assertEqual(len({first, *others}), 3)
        self.assertEqual(len(log.output), 3)
        self.assertIn("memory://1 has no files on this machine", log.output[0])


class Backend(enum.Enum):
    FLASH = 1
    TRITON = 2


def vllm_config(model: Path, **parts: Any) -> Any:
    made = {
        "model_config": SimpleNamespace(model=str(model), dtype="torch.bfloat16", hf_overrides={}),
        "cache_config": SimpleNamespace(cache_dtype="auto"), "load_config": SimpleNamespace(load_format="auto"),
        "attention_config": SimpleNamespace(backend=None), "kv_transfer_config": SimpleNamespace(engine_id="e1"), "instance_id": "i1",
    }
    for name, value in parts.items():
        part, _, field = name.partition("__")
        if field:
            setattr(made.setdefault(part, SimpleNamespace()), field, value)
        else:
            made[part] = value
    return SimpleNamespace(**made)


class Loaded(Folders):
    """An engine that was started after the files were made."""

    def setUp(self) -> None:
        super().setUp()
        after = mock.patch.object(weights, "process_started", return_value=2**62)
        after.start()
        self.addCleanup(after.stop)


class SinceTheStart(Folders):
    def test_files_that_have_changed_since_a_process_started_may_not_be_what_it_loaded(self) -> None:
        with self.assertRaisesRegex(Unidentified, "files of .*model have changed since the engine was started"):
            weights.loaded_identity_of(str(self.model))
        self.assertIn("have changed since", factors.weights_of(vllm_config(self.model)).private)
        self.assertIn("have changed since", sglang.weights_of(SimpleNamespace(model_path=str(self.model), load_format="auto"), None, 1).private)

    def test_a_process_knows_when_it_started(self) -> None:
        child = subprocess.run([sys.executable, "-c", "from terrace import weights; print(weights.process_started())"],
                               stdout=subprocess.PIPE, check=True)
        tick = 10**9 // os.sysconf("SC_CLK_TCK")
        made = os.stat(self.model).st_mtime_ns
        self.assertLess(weights.process_started(), made)
        self.assertGreater(int(child.stdout) + tick, made)


class Vllm(Loaded):
    def test_what_decides_about_kv_is_a_factor(self) -> None:
        rope = {"rope_type": "yarn", "factor": 2.0}
        with mock.patch.dict(os.environ, {"VLLM_KV_CACHE_LAYOUT": "HND"}):
            seen = [json.dumps(factors.weights_of(vllm_config(self.model)).factors)]
        changes: list[dict[str, Any]] = [
            {}, {"model_config__quantization": "fp8"}, {"model_config__hf_overrides": {"rope_parameters": rope}},
            {"model_config__rope_theta": 1e6}, {"model_config__disable_sliding_window": True}, {"cache_config__cache_dtype": "fp8"},
            {"attention_config__backend": Backend.FLASH}, {"attention_config__backend": Backend.TRITON},
            {"cache_config__sliding_window": 64}, {"cache_config__kv_cache_dtype_skip_layers": ["0"]},
            {"speculative_config__method": "eagle"}, {"model_config__dtype": "torch.float16"},
            {"load_config__ignore_patterns": ["original/*"]}, {"additional_config": {"a": 1}},
            {"parallel_config__tensor_parallel_size": 2},
            {"model_config__max_model_len": 8192, "model_config__hf_text_config":
                SimpleNamespace(rope_parameters={"original_max_position_embeddings": 4096})},
        ]
        seen += [json.dumps(factors.weights_of(vllm_config(self.model, **change)).factors) for change in changes]
        self.assertEqual(len(set(seen)), len(seen))

    def test_a_longer_model_is_the_same_one_without_long_rope(self) -> None:
        one, two = (factors.weights_of(vllm_config(self.model, model_config__max_model_len=longest)) for longest in (512, 1024))
        self.assertEqual(one, two)

    def test_what_cannot_be_told_is_the_engines_own(self) -> None:
        draft = SimpleNamespace(model="no/files", revision=None)
        cases: list[tuple[dict[str, Any], str]] = [
            ({"load_config__load_format": "dummy"}, 'load format "dummy"'),
            ({"model_config__model": "owner/model"}, "owner/model has no files"),
            ({"model_config__model_weights": "s3://bucket/model"}, "s3://bucket/model has no files"),
            ({"model_config__hf_overrides": lambda config: config}, "model_config.hf_overrides: a function"),
            ({"cache_config__calculate_kv_scales": True}, "calculate_kv_scales"),
            ({"speculative_config__draft_model_config": draft}, "no/files has no files"),
            ({"model_config__hf_config_path": "no/config"}, "no/config has no files"),
        ]
        for change, why in cases:
            with self.subTest(why=why):
                config = vllm_config(self.model, **change)
                made = factors.weights_of(config)
                self.assertIn(why, made.private)
                self.assertEqual(made, factors.weights_of(config), "its scheduler and its workers agree")
                for other in ({"instance_id": "i2"}, {"kv_transfer_config__engine_id": "e2"}):
                    self.assertNotEqual(factors.weights_of(vllm_config(self.model, **change, **other)).revision, made.revision)
                self.assertEqual(factors.weights_of(config, "the user's").revision, "the user's")

    def test_the_files_of_a_draft_model_are_part_of_it(self) -> None:
        draft = self.folder("draft", b"draft weights")
        config = vllm_config(self.model, speculative_config__draft_model_config=SimpleNamespace(model=str(draft), revision=None))
        first = factors.weights_of(config)
        self.assertFalse(first.private)
        keep_times(draft / "model.safetensors", b"other weights")
        self.assertNotEqual(factors.weights_of(config).revision, first.revision)

    def test_an_engine_without_a_name_has_one_for_each_process(self) -> None:
        config = vllm_config(self.model, instance_id=None, load_config__load_format="dummy")
        mine = factors.weights_of(config).revision
        self.assertEqual(factors.weights_of(config).revision, mine)
        with mock.patch.object(os, "getpid", return_value=-1):  # after a fork
            self.assertNotEqual(factors.weights_of(config).revision, mine)


class SGLang(Loaded):
    def args(self, **changes: Any) -> Any:
        return SimpleNamespace(**{"model_path": str(self.model), "load_format": "auto", "lora_paths": None, **changes})

    def test_files_and_arguments_decide(self) -> None:
        made = [sglang.weights_of(self.args(**change), None, 1) for change in
                ({}, {"kv_cache_dtype": "fp8_e5m2"}, {"attention_backend": "triton"}, {"json_model_override_args": '{"rope_theta": 1}'})]
        keep_times(self.model / "model.safetensors", b"swapped")
        made.append(sglang.weights_of(self.args(), None, 1))
        self.assertEqual(len({repr(one) for one in made}), 5)
        self.assertEqual([one.private for one in made], [""] * 5)

    def test_adapters_of_the_start_decide_however_they_are_given(self) -> None:
        adapter = self.folder("adapter")
        reference = SimpleNamespace(lora_name="a", lora_path=str(adapter))
        forms = ([f"a={adapter}"], [reference], [{"lora_name": "a", "lora_path": str(adapter)}], {"a": str(adapter)}, {"a": reference})
        made = [sglang.weights_of(self.args(lora_paths=form), None, 1) for form in forms]
        self.assertEqual(made, [made[0]] * len(forms))
        keep_times(adapter / "model.safetensors", b"swapped")
        named = sglang.weights_of(self.args(lora_paths=[str(adapter)]), "user", 1)
        self.assertNotEqual(sglang.weights_of(self.args(lora_paths=forms[0]), None, 1), made[0])
        self.assertEqual((named.revision, named.private), ("user", ""))
        lost = sglang.weights_of(self.args(lora_paths=["a=no/files"]), "user", 1)
        self.assertIn("no/files has no files", lost.private)
        self.assertNotEqual(lost.revision, "user")

    def test_what_cannot_be_told_is_the_engines_own(self) -> None:
        for args, why in ((self.args(load_format="dummy"), 'load format "dummy"'), (None, "arguments cannot be seen"),
                          (self.args(quantization_param_path="no/scales"), "no/scales has no files")):
            made = sglang.weights_of(args, None, 1)
            self.assertIn(why, made.private)
            self.assertEqual(sglang.weights_of(args, "user", 1).revision, "user")
            ranks = sglang.weights_of(args, None, 2)
            with mock.patch.object(os, "getpid", return_value=-1):
                self.assertEqual(sglang.weights_of(args, None, 2), ranks, "ranks are processes of one parent")
                self.assertNotEqual(sglang.weights_of(args, None, 1), made)


class Options(unittest.TestCase):
    def test_texts_and_numbers_are_read_as_what_they_mean(self) -> None:
        self.assertEqual((options.text("revision", 3), options.text("revision", "3")), ("3", "3"))
        self.assertEqual([options.seconds("s", given) for given in (1, 0.5, "0.5")], [1.0, 0.5, 0.5])
        self.assertEqual([options.whole("n", given) for given in (7, "7")], [7, 7])
        self.assertEqual([options.flag("f", given) for given in (True, "true", "False", False)], [True, True, False, False])

    def test_what_means_nothing_is_refused_by_name(self) -> None:
        cases: list[tuple[Any, list[Any]]] = [
            (options.text, [1.10, True, None, ["a"], b"a", "caf\udce9"]), (options.seconds, [0, -1, "fast", None, True, "nan", "inf", [1]]),
            (options.whole, [0, -1, 1.5, "1.5", None, True, "many"]), (options.flag, [1, 0, "yes", None, 1.0, []]),
        ]
        for read, wrong in cases:
            for given in wrong:
                with self.subTest(read=read.__name__, given=given), self.assertRaisesRegex(ValueError, 'expected .* for "name", got'):
                    read("name", given)


class Refused(unittest.TestCase):
    def test_a_space_that_cannot_be_described_is_told_and_ends_no_thread(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        memory = Memory(1 << 16)
        spec = SpaceSpec("m", "u8", "l", [Pool("rows", object_bytes=4096)], revision=3)  # type: ignore[arg-type]
        with self.assertLogs(LOG, "WARNING") as log:
            cache = PoolCache(daemon.socket, [spec], HostPool(os.dup(memory.fileno()), memory.nbytes, 0, 4096), log=logging.getLogger(LOG))
            self.addCleanup(cache.close)
            cache.await_attempt()
        self.assertFalse(cache.connected)
        self.assertIn("expected revision, got 3; trying again", log.output[0])
        self.assertIs(cache.lookup(bytes(36), "r"), False)


if __name__ == "__main__":
    unittest.main()
