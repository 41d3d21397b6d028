"""Where the connector's staging memory is, and its copies, with tensors. Here is PyTorch, and no GPU."""

from __future__ import annotations

import unittest

import torch
from terrace.vllm.make_staging import staging_for
from terrace.vllm.plan import Unusable
from terrace.vllm.staging import COUNTERS_BYTES, HostStaging
from vllm_connector_test import BLOCKS, BYTES, plan_with


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
        staging = staging_for(self.plan, kv, BLOCKS, self.nbytes)
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
                staging_for(self.plan, kv, BLOCKS, self.nbytes)
        with self.assertRaisesRegex(Unusable, "expected staging_bytes for a block"):
            staging_for(self.plan, self.kv(), BLOCKS, COUNTERS_BYTES)


if __name__ == "__main__":
    unittest.main()
