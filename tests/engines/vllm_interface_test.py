"""The tier and the connector against the base classes of the vLLM that is installed: drift of their interfaces shows here
first."""

from __future__ import annotations

import dataclasses
import inspect
import unittest

from vllm.config import KVTransferConfig, SchedulerConfig, VllmConfig
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1 import base as connectors
from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats
from vllm.v1 import kv_cache_interface
from vllm.v1.core.sched.output import CachedRequestData, NewRequestData, SchedulerOutput
from vllm.v1.kv_offload import base
from vllm.v1.outputs import KVConnectorOutput
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager, TransferJob
from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

from terrace.vllm import connector, metrics, plugin
from terrace.vllm.tier import TerraceTier


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


if __name__ == "__main__":
    unittest.main()
