"""vLLM with Terrace under it, as a secondary tier and by its connector: the tokens are the same whatever happens, and what can
be loaded is.

Two engine processes serve all cases of a door, because a start takes 10 seconds of a processor.
"""

from __future__ import annotations

import os
import subprocess
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import terrace
from daemon import PATIENCE
from engine import Engine
from vllm_door import BLOCK, PROMPT, WHOLE, Door
from volume import damage
from waiting import prompts_of

class Cases(Door):
    first: Engine
    second: Engine

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.first, cls.second = cls.start(), cls.start()
        for engine in (cls.first, cls.second):
            engine.ready()

    def test_the_weights_are_known_by_their_files(self) -> None:
        self.assertNotIn("is not shared beyond", self.first.whole_log())

    def test_a_warm_cache_gives_the_same_tokens(self) -> None:
        prompts = prompts_of(1)
        right = self.cold(self.first, prompts)
        made = self.loaded(self.first, prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [WHOLE]))
        self.assertGreater(self.tiers()["host"].bytes_read, 0)

    def test_what_one_engine_computes_the_other_loads(self) -> None:
        prompts = prompts_of(2, 4, 1000)
        right = self.cold(self.first, prompts)
        made = self.generate(self.second, prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [1000 // BLOCK * BLOCK] * 4))

    def test_a_longer_prompt_loads_the_prefix_that_is_there(self) -> None:
        (prompt,) = prompts_of(3)
        self.cold(self.first, [prompt])
        longer = prompt[:WHOLE] + prompts_of(4)[0]
        right = self.generate(self.second, [longer])
        self.assertEqual(right["cached"], [WHOLE])
        with self.standing_still(self.first):
            self.first.call("forget")
            computed = self.first.call("generate", prompts=[longer])
        self.assertEqual((computed["cached"], computed["tokens"]), ([0], right["tokens"]))
        self.first.call("settle")

    def test_wrong_bytes_would_be_seen(self) -> None:
        """The control: with KV that is changed on its way, the tokens differ, so equal tokens prove something."""
        prompts = prompts_of(6)
        right = self.cold(self.first, prompts)
        self.first.call("wrong_loads", on=True)
        try:
            made = self.loaded(self.first, prompts)
        finally:
            self.first.call("wrong_loads", on=False)
        self.assertEqual(made["cached"], [WHOLE])
        self.assertNotEqual(made["tokens"], right)
        self.first.call("forget")

    def test_after_the_daemons_restart_the_disk_has_it(self) -> None:
        prompts = prompts_of(7, 2)
        right = self.cold(self.first, prompts)
        self.restart()
        made = self.loaded(self.first, prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [WHOLE] * 2))
        self.assertGreater(self.tiers()["disk"].bytes_read, 0)

    def test_damaged_bytes_on_disk_are_computed_again(self) -> None:
        prompts = prompts_of(8, 2)
        right = self.cold(self.first, prompts)
        self.restart(lambda: damage(self.server.folder / "state/terrace.extents"))
        made = self.loaded(self.first, prompts)
        self.assertEqual(made["tokens"], right)
        self.has_computed(made)
        again = self.loaded(self.first, prompts)  # what was computed has been stored again
        self.assertEqual((again["tokens"], again["cached"]), (right, [WHOLE] * 2))

    def test_a_daemon_that_is_killed_in_the_middle_changes_no_token(self) -> None:
        prompts = prompts_of(9, 4, 1000)
        right = self.cold(self.first, prompts)
        for delay in (0.0, 0.005, 0.02, 0.1):
            self.first.call("forget")
            with self.reconnecting(self.first, self.second):
                self.first.begin("generate", prompts=prompts)
                time.sleep(delay)
                self.server.kill()
                made = self.first.answer()
                self.assertEqual(made["tokens"], right, delay)
                away = self.loaded(self.first, prompts)
                self.assertEqual((away["tokens"], away["cached"]), (right, [0] * 4))
                self.server.start()

    def test_a_daemon_that_stands_still_is_gone_on_without(self) -> None:
        prompts = prompts_of(10)
        right = self.cold(self.first, prompts)
        self.first.call("forget")
        with self.standing_still(self.first):
            made = self.first.call("generate", prompts=prompts)
            self.assertEqual((made["tokens"], made["cached"]), (right, [0]))
            self.assertLess(made["seconds"], PATIENCE)
        self.first.call("settle")

    def test_z_after_the_engines_restart_the_daemon_has_it(self) -> None:
        """The last, since it ends an engine: nothing is left behind in /dev/shm or in its log."""
        prompts = prompts_of(11)
        right = self.cold(self.first, prompts)
        self.assertEqual(self.first.end(), 0)
        self.assertNotIn("BufferError", self.first.whole_log())
        self.assertNotIn("Failed to shut down", self.first.whole_log())
        self.assertEqual([path for path in self.first.pools if path.exists()], [])
        type(self).first = self.start()
        made = self.generate(self.first, prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [WHOLE]))

    def has_computed(self, made: dict[str, Any]) -> None:
        """What was damaged was not used."""

    def restart(self, between: Callable[[], None] = lambda: None) -> None:
        with self.reconnecting(self.first, self.second):
            self.server.terminate()
            between()
            self.server.start()


class VllmTier(Cases):
    door = "tier"

    def has_computed(self, made: dict[str, Any]) -> None:
        self.assertEqual(made["cached"], [0] * len(made["cached"]))

    def test_the_pool_is_shared_memory(self) -> None:
        self.assertEqual(len(self.first.pools), 1)


class VllmConnector(Cases):
    door = "connector"
    connections = 2  # of the scheduler, and of the worker

    def has_computed(self, made: dict[str, Any]) -> None:
        self.assertGreater(self.first.call("metrics")["vllm:terrace_loads_failed"], 0)

    def test_operators_see_its_scheduler_and_its_worker(self) -> None:
        with terrace.connect(self.server.socket, observes=True, timeout=PATIENCE) as observer:
            names = {client.name for client in observer.status(timeout=PATIENCE).clients}
        self.assertLessEqual({"vllm scheduler", "vllm worker 0"}, names)
        self.cold(self.first, prompts_of(40))
        terrace_command = Path(os.environ["TERRACED"]).resolve().parents[2] / "src/cli/terrace"
        done = subprocess.run([terrace_command, "--socket", self.server.socket, "explain", "--lookup", "last"], text=True,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^lookup \d+ of client vllm scheduler for \S+, ")

    def test_its_metrics_are_among_vllms(self) -> None:
        prompts = prompts_of(12)
        self.cold(self.first, prompts)
        before = self.first.call("metrics")
        self.loaded(self.first, prompts)
        after = self.first.call("metrics")
        grown = {name: after[name] - before[name] for name in after}
        self.assertEqual((grown["vllm:terrace_lookups"], grown["vllm:terrace_loads"]), (1, 1))
        self.assertEqual(grown["vllm:terrace_loaded_chunks"], WHOLE // BLOCK)
        self.assertGreater(grown["vllm:terrace_loaded_bytes"], 0)
        self.assertEqual(grown["vllm:external_prefix_cache_hits"], WHOLE)

    def test_preempted_requests_give_the_same_tokens(self) -> None:
        """There are blocks for seven of eight: some are taken away, and loaded or computed again."""
        prompts = prompts_of(13, 8, 960)
        alone = [self.generate_long(self.second, [prompt])["tokens"][0] for prompt in prompts]
        before = self.first.call("metrics")["vllm:num_preemptions"]
        made = self.generate_long(self.first, prompts)
        self.assertGreater(self.first.call("metrics")["vllm:num_preemptions"], before)
        self.assertEqual(made["tokens"], alone)

    def generate_long(self, engine: Engine, prompts: list[list[int]]) -> dict[str, Any]:
        made = engine.call("generate", prompts=prompts, tokens=96)
        engine.call("settle")
        return made

    def test_turns_of_a_conversation_have_the_tokens_of_prompts_without_a_name(self) -> None:
        (question,), (more,) = prompts_of(16), prompts_of(17, 1, 64)
        unnamed = self.cold(self.second, [question])
        self.assertTrue(self.second.call("clear")["reset"])
        before = self.first.call("metrics")["vllm:terrace_turns_reported"]
        asks = {"terrace_session": "a conversation", "terrace_think_seconds": 20}
        first = self.turn(question, asks)
        self.assertEqual((first["tokens"], first["cached"]), (unnamed, [0]))
        prompt = question + unnamed[0] + more
        second = self.turn(prompt, {**asks, "terrace_session_ends": True})
        self.assertEqual(second["cached"], [(PROMPT + 15) // BLOCK * BLOCK], "the answer's KV was stored with the prompt's")
        self.assertTrue(self.first.call("clear")["reset"])
        self.assertEqual(self.cold(self.second, [prompt]), second["tokens"])
        self.turn(prompt, {})  # the worker hears of the second turn's end with the next step
        self.assertEqual(self.first.call("metrics")["vllm:terrace_turns_reported"], before + 2)

    def turn(self, prompt: list[int], asks: dict[str, Any]) -> dict[str, Any]:
        self.assertTrue(self.first.call("forget")["reset"])
        made = self.first.call("generate", prompts=[prompt], parameters=[asks])
        self.assertFalse(self.first.call("settle")["pending"])
        return made

    def test_a_name_that_is_no_name_is_told_and_left_out(self) -> None:
        (prompt,) = prompts_of(18)
        right = self.cold(self.second, [prompt])
        made = self.turn(prompt, {"terrace_session": ["a"]})
        self.assertEqual(made["tokens"], right)
        self.assertEqual(self.first.whole_log().count("got terrace_session = ['a']; it is left out"), 1)

    def test_a_reset_with_the_connector_forgets_what_the_daemon_has(self) -> None:
        prompts = prompts_of(14)
        right = self.cold(self.first, prompts)
        self.assertTrue(self.first.call("clear")["reset"])
        again = self.generate(self.second, prompts)
        self.assertEqual((again["tokens"], again["cached"]), (right, [0]))


class VllmConnectorWithSeveralGroups(Door):
    """A model of which some layers attend to a window alone."""

    door = "connector"
    connections = 2

    def test_the_end_of_a_window_and_all_of_the_rest_are_loaded(self) -> None:
        engine = self.start(TERRACE_TEST_MODEL=os.environ["TERRACE_TEST_WINDOWED_MODEL"]).ready()
        prompts = prompts_of(15, 2)
        right = self.cold(engine, prompts)
        made = self.loaded(engine, prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [WHOLE] * 2), engine.log_text())
        engine.call("wrong_loads", on=True)
        self.assertNotEqual(self.loaded(engine, prompts)["tokens"], right)
        engine.call("wrong_loads", on=False)
        engine.call("clear")
        self.assertEqual(self.generate(engine, prompts)["tokens"], right)
        engine.call("forget")
        engine.begin("generate", prompts=prompts)
        self.server.kill()
        self.assertEqual(engine.answer()["tokens"], right)


del Door, Cases  # which are no tests by themselves


if __name__ == "__main__":
    unittest.main()
