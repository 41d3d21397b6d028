"""The tier against the base classes of the vLLM that is installed: drift of its interface shows here first."""

from __future__ import annotations

import dataclasses
import inspect
import unittest

from vllm.v1.kv_offload import base
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager, TransferJob
from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory

from terrace.vllm import plugin
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


if __name__ == "__main__":
    unittest.main()
