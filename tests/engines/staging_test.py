"""Where the connector's staging memory is, and its copies, with tensors. Here is PyTorch, and no GPU."""

from __future__ import annotations

import unittest
from dataclasses import replace
from unittest import mock

import torch
from terrace.vllm import make_staging
from terrace.vllm.make_staging import LEAST_BYTES, SHARE, STEPS, Step, staging_for
from terrace.vllm.plan import Unusable
from terrace.vllm.staging import COUNTERS_BYTES, HostStaging
from vllm_connector_test import BLOCKS, BYTES, plan_with


STEP = Step(tokens=2048, requests=8)


class Staging(unittest.TestCase):
    def setUp(self) -> None:
        self.plan = plan_with()
        self.nbytes = COUNTERS_BYTES + 4 * self.plan.slot_bytes

    def kv(self, device: str = "cpu") -> dict[str, torch.Tensor]:
        if device != "cpu":
            return {name: torch.zeros((BLOCKS, size), dtype=torch.uint8, device=device) for name, size in BYTES.items()}
        return {name: torch.randint(256, (BLOCKS, size), dtype=torch.uint8) for name, size in BYTES.items()}

    def test_kv_of_the_host_has_staging_memory_of_the_host(self) -> None:
        kv = self.kv()
        right = {name: tensor.clone() for name, tensor in kv.items()}
        staging = staging_for(self.plan, kv, BLOCKS, self.nbytes, STEP)
        self.assertIsInstance(staging, HostStaging)
        self.assertEqual(staging.slots, 4)
        staging.mover.gather([staging.mover.rows([5, 9, 2])], 1)
        for name, tensor in kv.items():
            tensor.zero_()
            staging.mover.scatter(name, staging.mover.rows([20, 21, 22])[:2], 1)
            self.assertTrue(torch.equal(tensor[[20, 21]], right[name][[5, 9]]))
            self.assertFalse(tensor[22].any())
        staging.pool.close()

    def test_other_places_are_refused(self) -> None:
        mixed = self.kv() | {"c": self.kv("meta")["c"]}
        for kv, says in ((self.kv("meta"), "got it in meta"), (mixed, "got it in cpu, meta")):
            with self.assertRaisesRegex(Unusable, says):
                staging_for(self.plan, kv, BLOCKS, self.nbytes, STEP)
        with self.assertRaisesRegex(Unusable, "expected staging_bytes for a block"):
            staging_for(self.plan, self.kv(), BLOCKS, COUNTERS_BYTES, STEP)

    def test_by_default_it_has_room_for_two_steps_within_a_share_of_what_is_free(self) -> None:
        large = replace(self.plan, slot_bytes=2 << 20)  # of 16 tokens, as a model of 8 billion parameters
        blocks, step = 40_000, Step(tokens=8192, requests=256)
        completed = 8192 // 16 + 256
        self.assertGreater(STEPS * completed * large.slot_bytes, LEAST_BYTES)
        for free, slots in ((1 << 40, STEPS * completed), (SHARE << 30, (1 << 30) // large.slot_bytes), (0, LEAST_BYTES // large.slot_bytes)):
            self.assertEqual(make_staging._slots_for(large, blocks, step, free), slots)
        self.assertEqual(make_staging._slots_for(large, 100, step, 1 << 40), 100, "no more than the KV itself")
        self.assertEqual(make_staging._slots_for(replace(large, slot_bytes=1 << 30), 100, step, 0), 1, "at least a block")

    def test_what_is_free_is_asked_of_the_place_where_the_kv_is(self) -> None:
        gpu = torch.device("cuda", 3)
        with mock.patch.object(torch.cuda, "mem_get_info", return_value=(5 << 30, 80 << 30)) as asked:
            self.assertEqual(make_staging._free_bytes(gpu), 5 << 30)
        asked.assert_called_once_with(gpu)
        self.assertGreater(make_staging._free_bytes(torch.device("cpu")), 0)
        staging = staging_for(self.plan, self.kv(), BLOCKS, None, STEP)
        self.assertEqual(staging.slots, BLOCKS)
        staging.pool.close()


if __name__ == "__main__":
    unittest.main()
