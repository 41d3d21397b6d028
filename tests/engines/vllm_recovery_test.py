"""Loads of the connector that fail, in each way in which vLLM runs a model and schedules: no token rests on what did not come."""

from __future__ import annotations

import importlib.util
import json
import os
import unittest

import vllm
from terrace.vllm.layered_loads import RECOVERING

from engine import Engine
from vllm_door import BLOCK, WHOLE, Door
from waiting import prompts_of

VERSION = vllm.__version__.partition("+")[0]
KEPT = (0, 2)  # chunks that come


class Way(Door):
    door = "connector"
    connections = 2
    runner = "V1"
    asynchronous = False
    layered = False
    windowed = False  # some layers attend to a window alone: two groups, so failed requests are told instead of failed blocks

    @classmethod
    def setUpClass(cls) -> None:
        if cls.runner == "V2" and importlib.util.find_spec("triton") is None:
            raise unittest.SkipTest("its kernels need Triton, which comes with SGLang's packages")
        super().setUpClass()

    @classmethod
    def starting(cls) -> Engine:
        settings = {"TERRACE_TEST_ASYNCHRONOUS": "1"} if cls.asynchronous else {}
        if cls.windowed:
            settings["TERRACE_TEST_MODEL"] = os.environ["TERRACE_TEST_WINDOWED_MODEL"]
        options = {"layered": True} if cls.layered else {}  # otherwise the default
        return cls.start(TERRACE_TEST_RUNNER=cls.runner, TERRACE_TEST_OPTIONS=json.dumps(options), **settings)

    def test_no_token_rests_on_a_load_that_failed(self) -> None:
        engine = self.starting().ready()
        self.assertEqual(engine.call("way"), {"runner": self.runner, "asynchronous": self.asynchronous})
        alone, together = prompts_of(20, 3), prompts_of(21, 4, 1000)
        right = [self.cold(engine, [prompt]) for prompt in alone]
        right_together = self.cold(engine, together)
        made = self.loaded(engine, alone[:1])
        self.assertEqual((made["tokens"], made["cached"]), (right[0], [WHOLE]))
        for kept in KEPT:
            before = engine.call("metrics")["vllm:terrace_loads_failed"]
            engine.call("failing_loads", kept=kept)
            self.assertEqual([self.loaded(engine, [prompt])["tokens"] for prompt in alone], right, kept)
            self.assertEqual(self.loaded(engine, together)["tokens"], right_together, kept)
            engine.call("failing_loads", kept=None)
            self.assertEqual(engine.call("metrics")["vllm:terrace_loads_failed"] - before, len(alone + together))
        made = self.loaded(engine, together)  # nothing wrong was stored
        self.assertEqual((made["tokens"], made["cached"]), (right_together, [1000 // BLOCK * BLOCK] * 4))
        self.spoiled_loads_are_noticed(engine, alone[0], right[0])
        engine.call("forget")
        engine.begin("generate", prompts=together)
        self.server.kill()
        self.assertEqual(engine.answer()["tokens"], right_together)
        self.server.start()

    def spoiled_loads_are_noticed(self, engine: Engine, prompt: list[int], right: list[list[int]]) -> None:
        """The control: garbage of which nobody is told."""
        engine.call("wrong_loads", on=True)
        self.assertNotEqual(self.loaded(engine, [prompt])["tokens"], right)
        engine.call("wrong_loads", on=False)
        engine.call("forget")


class V1(Way):
    pass


class V1Asynchronous(Way):
    asynchronous = True


class V2(Way):
    runner = "V2"


class V2Asynchronous(Way):
    runner = "V2"
    asynchronous = True


class V1Windowed(Way):
    windowed = True


class V2AsynchronousWindowed(V2Asynchronous):
    windowed = True


class V1Layered(Way):
    layered = True

    def test_no_other_way_takes_layered_loads(self) -> None:
        """Those that do are tried above."""
        self.assertEqual(RECOVERING, {(VERSION, self.runner, self.asynchronous)})


class V1AsynchronousLayered(Way):
    asynchronous = True
    layered = True

    def test_no_token_rests_on_a_load_that_failed(self) -> None:
        engine = self.starting()
        with self.assertRaisesRegex(AssertionError, "the engine ended with"):
            engine.ready()
        said = [line for line in engine.whole_log().splitlines() if '"layered": true is refused' in line]
        self.assertIn(f"vLLM {vllm.__version__} with its V1 model runner and asynchronous scheduling", said[-1])
        self.assertIn("leave it out", said[-1])


del Way, Door


if __name__ == "__main__":
    unittest.main()
