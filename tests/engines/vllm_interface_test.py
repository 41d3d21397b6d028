"""The tier and the connector against the base classes of the vLLM that is installed: drift of their interfaces shows here
first."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
import unittest
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest import mock

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from vllm.config import (AttentionConfig, CacheConfig, KVTransferConfig, LoadConfig, LoRAConfig, ModelConfig, MultiModalConfig,
                         ParallelConfig, SchedulerConfig, SpeculativeConfig, VllmConfig)
from vllm.config.mamba import MambaConfig
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1 import base as connectors
from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats
from vllm.lora.request import LoRARequest
from vllm.model_executor import model_loader
from vllm.v1 import kv_cache_interface
from vllm.v1.core import kv_cache_utils
from vllm.v1.core.sched.output import CachedRequestData, NewRequestData, SchedulerOutput
from vllm.v1.kv_offload import base
from vllm.v1.outputs import KVConnectorOutput
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager, TransferJob
from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

from terrace.vllm import connector, factors, metrics, plugin, tier
from terrace.vllm.make_staging import Step
from terrace.vllm.tier import TerraceTier
from terrace.weights import Weights


# Fields that decide about KV in versions that are older than the one that is installed, or newer.
OTHER_VERSIONS = {
    "rope_scaling", "rope_theta", "override_attention_dtype", "use_cudnn_prefill", "use_trtllm_ragged_deepseek_prefill",
    "disable_flashinfer_prefill", "use_fp4_indexer_cache", "lora_extra_vocab_size", "bias_enabled",
    "disable_lookahead_block_hashes", "trtllm_ragged_backend",
}


def accepts(method: object, of_base: object) -> bool:
    """Whether each way to call the base's method is one to call ours."""
    ours = inspect.signature(method).parameters  # type: ignore[arg-type]
    return all(name in ours for name in inspect.signature(of_base).parameters)  # type: ignore[arg-type]


class Interface(unittest.TestCase):
    def test_nothing_abstract_is_left_and_all_signatures_agree(self) -> None:
        self.assertEqual(TerraceTier.__abstractmethods__, frozenset())
        for name, method in vars(TerraceTier).items():
            if inspect.isfunction(method) and hasattr(SecondaryTierManager, name):
                self.assertTrue(accepts(method, getattr(SecondaryTierManager, name)), name)

    def test_only_an_engine_that_may_sleep_keeps_nothing_in_its_blocks(self) -> None:
        """Sleep discards KV without a word to the connector."""
        for sleeps in (False, True):
            one: Any = object.__new__(connector.TerraceConnector)
            one._plan = SimpleNamespace(spec=SimpleNamespace(rank=0))
            one._blocks, one._options = 4, connector._Options()
            one._vllm_config = SimpleNamespace(scheduler_config=SchedulerConfig.default_factory(max_num_batched_tokens=4096, max_num_seqs=3),
                                               model_config=SimpleNamespace(enable_sleep_mode=sleeps))
            with mock.patch.object(connector, "staging_for") as staging_for, mock.patch.object(connector, "WorkerSide") as worker_side:
                one.register_kv_caches({})
            self.assertEqual(staging_for.call_args.args[3:], (None, Step(4096, 3)))
            self.assertEqual(worker_side.call_args.kwargs["keeps"], not sleeps)
        self.assertIn("enable_sleep_mode", {field.name for field in dataclasses.fields(ModelConfig)})

    def test_block_hashes_are_made_by_functions_of_vllm_with_these_parameters(self) -> None:
        for function, parameters in (
            (kv_cache_utils.generate_block_hash_extra_keys, ["request", "start_token_idx", "end_token_idx", "start_mm_idx"]),
            (kv_cache_utils.hash_block_tokens, ["hash_function", "parent_block_hash", "curr_block_token_ids", "extra_keys"]),
        ):
            self.assertEqual(list(inspect.signature(function).parameters), parameters)
        hasher = inspect.signature(kv_cache_utils.get_request_block_hasher).parameters
        self.assertLessEqual(set(hasher), {"hash_block_size", "caching_hash_fn", "num_hash_lookahead_tokens"}, "block_hashes.py knows no other")

    def test_vllm_finds_the_tier_by_its_module(self) -> None:
        found = SecondaryTierFactory.get_tier_class({"type": "TerraceTier", "module_path": "terrace.vllm.tier"})
        self.assertIs(found, TerraceTier)

    def test_older_versions_find_the_tier_by_its_registered_name(self) -> None:
        plugin.register()
        plugin.register()  # each of vLLM's processes may
        self.assertIs(SecondaryTierFactory.get_tier_class({"type": "TerraceTier"}), TerraceTier)
        SecondaryTierFactory._registry.pop("TerraceTier")

    def test_what_the_tier_reads_and_fills_exists(self) -> None:
        fields = {field.name for field in dataclasses.fields(TransferJob)}
        self.assertLessEqual({"job_id", "keys", "chunk_ids", "req_context"}, fields)
        self.assertLessEqual({"job_id", "success", "successful_keys"}, {field.name for field in dataclasses.fields(JobResult)})
        self.assertLessEqual({"HIT", "MISS", "RETRY"}, set(base.LookupResult.__members__))
        self.assertIn("new_req_ids", base.ScheduleEndContext._fields)
        self.assertTrue(callable(base.ReqContext.get_offload_key_position))
        key = base.make_offload_key(bytes(range(32)), 7)
        self.assertEqual((bytes(key[:-4]), int.from_bytes(key[-4:], "big")), (bytes(range(32)), 7))


class ConnectorInterface(unittest.TestCase):
    def test_nothing_abstract_is_left_and_all_signatures_agree(self) -> None:
        for ours, theirs in ((connector.TerraceConnector, connectors.KVConnectorBase_V1),
                             (connector.TerraceConnector, connectors.SupportsHMA),
                             (connector.Told, connectors.KVConnectorWorkerMetadata),
                             (metrics.Statistics, KVConnectorStats), (metrics.PrometheusMetrics, KVConnectorPromMetrics)):
            self.assertFalse(getattr(ours, "__abstractmethods__", None), ours)
            for name, method in vars(ours).items():
                method = getattr(method, "__func__", method)
                of_base = getattr(theirs, name, None)
                if inspect.isfunction(method) and not name.startswith("__") and of_base is not None:
                    self.assertTrue(accepts(method, getattr(of_base, "__func__", of_base)), f"{ours.__name__}.{name}")

    def test_the_gauge_counts_the_connections_of_scheduler_and_workers(self) -> None:
        labels = ["model_name", "engine"]
        made = metrics.PrometheusMetrics(SimpleNamespace(kv_transfer_config=None),
                                         {kind: kind for kind in (Counter, Gauge, Histogram)}, labels, {0: ["tiny", "0"]})
        counters = SimpleNamespace()
        scheduler: dict[str, float] = {}
        worker: dict[str, float] = {}

        def step(scheduler_connected: bool, worker_connected: bool) -> float | None:
            """Both sides report once, as in each step, and vLLM sums their reports up."""
            reports = [metrics.Statistics.since(counters, told, connected)
                       for told, connected in ((scheduler, scheduler_connected), (worker, worker_connected))]
            together = metrics.Statistics(data={})
            for report in reports:
                if report is not None:
                    together.aggregate(report)
            made.observe(together.data)
            self.assertNotIn("Terrace connected", together.reduce())
            return REGISTRY.get_sample_value("vllm:terrace_connected", {"model_name": "tiny", "engine": "0"})

        self.assertEqual(step(False, False), 0)
        self.assertEqual(step(True, False), 1)
        self.assertEqual(step(True, True), 2)
        self.assertEqual(step(True, True), 2)
        self.assertEqual(step(False, False), 0)

    def test_vllm_finds_the_connector_by_its_module(self) -> None:
        config = KVTransferConfig(kv_connector="TerraceConnector", kv_connector_module_path="terrace.vllm.connector",
                                  kv_role="kv_both")
        self.assertIs(KVConnectorFactory.get_connector_class(config), connector.TerraceConnector)
        self.assertTrue(KVConnectorFactory.supports_hma_config(config))

    def test_what_the_connector_reads_exists(self) -> None:
        def fields(of: type) -> set[str]:
            return {field.name for field in dataclasses.fields(of)}

        self.assertLessEqual({"scheduled_new_reqs", "scheduled_cached_reqs", "num_scheduled_tokens"}, fields(SchedulerOutput))
        self.assertLessEqual({"req_id", "block_ids", "num_computed_tokens"}, fields(NewRequestData))
        self.assertLessEqual({"req_ids", "resumed_req_ids", "new_block_ids", "num_computed_tokens"}, fields(CachedRequestData))
        self.assertLessEqual({"num_blocks", "kv_cache_groups"}, fields(kv_cache_interface.KVCacheConfig))
        self.assertLessEqual({"layer_names", "kv_cache_spec"}, fields(kv_cache_interface.KVCacheGroupSpec))
        self.assertLessEqual({"block_size", "sliding_window"}, fields(kv_cache_interface.SlidingWindowSpec))
        self.assertIn("kv_load_failure_policy", fields(KVTransferConfig))
        self.assertLessEqual({"finished_recving", "failed_recving"}, fields(connectors.KVConnectorTransferResults))
        for kind in ("FullAttentionSpec", "MLAAttentionSpec", "SlidingWindowSpec", "SlidingWindowMLASpec"):
            self.assertTrue(hasattr(kv_cache_interface, kind), kind)

    def test_what_decides_about_layered_loads_exists(self) -> None:
        self.assertTrue(hasattr(VllmConfig, "use_v2_model_runner"))
        fields = {field.name for field in dataclasses.fields(VllmConfig)}
        self.assertLessEqual({"scheduler_config", "kv_transfer_config", "speculative_config"}, fields)
        self.assertIn("async_scheduling", {field.name for field in dataclasses.fields(SchedulerConfig)})
        requires = connector.TerraceConnector.requires_piecewise_for_cudagraph
        self.assertEqual([requires({}), requires({"layered": True})], [False, True])

    def test_failed_requests_are_asked_for_and_handled(self) -> None:
        """Or several groups of layers are refused."""
        self.assertTrue(hasattr(connectors.KVConnectorBase_V1, "get_transfer_results"))
        self.assertIn("failed_recving", {field.name for field in dataclasses.fields(KVConnectorOutput)})

    def test_an_unknown_option_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "expected options of TerraceConnector among .*, got sokcet"):
            connector._Options.of({"sokcet": "/tmp/s"})


class TierWeights(unittest.TestCase):
    """A tier is given no configuration of weights, quantization or adapters, but is made where there is one."""

    def made(self, vllm_config: Any, revision: str | None = None) -> Weights:
        """As by a function of vLLM that has it."""
        return tier._weights(SimpleNamespace(), revision)

    def config(self, **more: Any) -> Any:
        return SimpleNamespace(model_config=SimpleNamespace(model="no/files"), kv_transfer_config=KVTransferConfig(), instance_id="i", **more)

    def test_the_configuration_of_its_callers_counts(self) -> None:
        config = self.config(load_config=LoadConfig(load_format="dummy"))
        self.assertIn('load format "dummy"', self.made(config).private)
        self.assertEqual(self.made(config).factors["load_config.load_format"], "dummy")
        self.assertEqual(self.made(config, "user").revision, "user")

    def test_without_one_nothing_is_shared(self) -> None:
        self.assertIn("cannot be seen by this tier", self.made(None).private)
        self.assertEqual(self.made(None, "user"), Weights("user", {}))

    def test_with_adapters_nothing_is_shared_whatever_the_user_says(self) -> None:
        made = self.made(self.config(lora_config=object()), "user")
        self.assertIn("which adapter (LoRA) a request uses", made.private)
        self.assertRegex(made.revision, "^engine-")


class Factors(unittest.TestCase):
    """Every field of vLLM's configuration is known: it decides about KV, or a reason says why it does not."""

    def fields(self, part: str) -> set[str]:
        kinds = {"": VllmConfig, "model_config": ModelConfig, "model_config.multimodal_config": MultiModalConfig,
                 "cache_config": CacheConfig, "parallel_config": ParallelConfig, "attention_config": AttentionConfig,
                 "speculative_config": SpeculativeConfig, "load_config": LoadConfig, "lora_config": LoRAConfig}
        for name in ("mamba_config", "diffusion_config"):
            kinds[name] = typing.get_args(typing.get_type_hints(VllmConfig)[name])[0] if name != "mamba_config" else MambaConfig
        return {field.name for field in dataclasses.fields(kinds[part])}

    def test_each_field_is_used_or_has_a_reason_to_be_left_out(self) -> None:
        self.assertEqual(factors.USED.keys(), factors.IGNORED.keys())
        for part, used in factors.USED.items():
            ignored = [name for names in factors.IGNORED[part].values() for name in names]
            self.check(part, used, ignored)
        ignored = [name for names in factors.IGNORED_WITH_ADAPTERS.values() for name in names]
        self.check("lora_config", factors.USED_WITH_ADAPTERS, ignored)

    def check(self, part: str, used: Sequence[str], ignored: Sequence[str]) -> None:
        with self.subTest(part=part):
            self.assertEqual(len({*used, *ignored}), len(used) + len(ignored), "a field is named twice")
            fields = self.fields(part)
            self.assertEqual(fields - {*used, *ignored}, set(), "does it decide about the KV of given tokens?")
            self.assertEqual(set(used) - fields - OTHER_VERSIONS, set(), "no version has it")

    def test_what_vllm_hashes_itself_is_known(self) -> None:
        """Of all parts that its own hash of a configuration asks."""
        source = inspect.getsource(VllmConfig.compute_hash)
        parts = set(re.findall(r"self\.([a-z_]+_config)\b", source))
        known = {*factors.USED, *factors.USED[""], *(name for names in factors.IGNORED[""].values() for name in names)}
        self.assertGreater(len(parts), 10)
        self.assertEqual(parts - known, set())

    def test_what_is_asked_of_an_adapter_exists(self) -> None:
        request = LoRARequest("name", 1, "/path")
        self.assertEqual((request.lora_name, request.lora_int_id, request.lora_path), ("name", 1, "/path"))

    def test_formats_of_files_are_vllms(self) -> None:
        formats = set(typing.get_args(model_loader.LoadFormats)) - factors.FILE_FORMATS
        self.assertEqual(formats, {"dummy", "ipc_cache", "modelexpress", "tensorizer"}, "does it read the model's files?")

    def test_an_engine_has_a_name_that_its_processes_know(self) -> None:
        names = {"kv_transfer_config": KVTransferConfig(), "instance_id": "i"}
        self.assertRegex(factors.engine_identity(SimpleNamespace(**names)), "^engine-[0-9a-f-]{36}-i$")

    def test_used_values_can_be_told(self) -> None:
        for given in (AttentionConfig(backend="FLASH_ATTN"), CacheConfig(), LoadConfig(), ParallelConfig()):
            factors.plain(given)
        self.assertEqual(factors.plain(AttentionConfig(backend="FLASH_ATTN").backend), "FLASH_ATTN")


if __name__ == "__main__":
    unittest.main()
