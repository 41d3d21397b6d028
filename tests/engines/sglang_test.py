"""SGLang's HiCache with Terrace as its storage: the tokens are the same whatever happens, and what can be loaded is.

Two engine processes serve all cases, because a start takes half a minute of a processor.
"""

from __future__ import annotations

import importlib.util
import os
import time
import unittest
from pathlib import Path
from typing import Any

from daemon import Daemon
from disk_case import OverDisk
from engine import Engine
from shared_store import SharedStore, objects_in_store, without_server
from volume import damage
from waiting import prompts_of, until

if importlib.util.find_spec("sglang") is None:
    raise unittest.SkipTest("SGLang is not installed here")

PAGE = 32
PROMPT = 300  # tokens: 9 whole pages and a rest
ANSWER = 16  # tokens; the last of them has no KV
PAGES = (PROMPT + ANSWER - 1) // PAGE
WHOLE = PROMPT // PAGE * PAGE


class SglangHiCache(OverDisk):
    connections = 3
    first: Engine
    second: Engine

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Daemon(host_bytes=64 << 20, disk_bytes=256 << 20)
        cls.addClassCleanup(cls.server.stop)
        cls.await_disk()
        cls.first = cls.engine()
        cls.addClassCleanup(lambda: cls.first.kill())
        cls.second = cls.engine()
        cls.addClassCleanup(lambda: cls.second.kill())
        for engine in (cls.first, cls.second):
            engine.ready()

    def test_the_weights_are_known_by_their_files(self) -> None:
        self.assertNotIn("is not shared beyond", self.first.whole_log())

    @classmethod
    def engine(cls) -> Engine:
        return Engine(cls.server.socket, "sglang_engine.py")

    def cold(self, engine: Engine, prompts: list[list[int]]) -> list[list[int]]:
        """The right tokens: computed, and stored on disk as well."""
        before = self.tiers()["disk"].objects
        pages = sum((len(prompt) + ANSWER - 1) // PAGE for prompt in prompts)
        made = engine.call("generate", prompts=prompts)
        self.assertEqual(made["cached"], [0] * len(prompts))
        until(lambda: self.tiers()["disk"].objects >= before + pages)
        return made["tokens"]

    def loaded(self, engine: Engine, prompts: list[list[int]]) -> dict[str, Any]:
        """Without what the engine itself has kept."""
        self.forget(engine)
        return engine.call("generate", prompts=prompts)

    def forget(self, engine: Engine) -> None:
        """SGLang refuses it while it still writes."""
        until(lambda: engine.call("forget")["reset"])

    def test_a_warm_cache_gives_the_same_tokens(self) -> None:
        prompts = prompts_of(101)
        right = self.cold(self.first, prompts)
        made = self.loaded(self.first, prompts)
        self.assertEqual((made["tokens"], made["stored"]), (right, [WHOLE]))
        self.assertGreater(self.tiers()["host"].bytes_read, 0)

    def test_what_one_engine_computes_the_other_loads(self) -> None:
        prompts = prompts_of(102, 2, 1000)
        right = self.cold(self.first, prompts)
        made = self.second.call("generate", prompts=prompts)
        self.assertEqual((made["tokens"], made["stored"]), (right, [1000 // PAGE * PAGE] * 2))

    def test_a_longer_prompt_loads_the_prefix_that_is_there(self) -> None:
        (prompt,) = prompts_of(103)
        self.cold(self.first, [prompt])
        longer = prompt[:WHOLE] + prompts_of(104)[0]
        made = self.second.call("generate", prompts=[longer])
        self.assertEqual(made["stored"], [WHOLE])
        self.server.pause()  # its lookups count as misses: computed from the beginning
        self.addCleanup(self.server.resume)
        self.forget(self.first)
        computed = self.first.call("generate", prompts=[longer])
        self.server.resume()
        self.assertEqual((computed["cached"], computed["tokens"]), ([0], made["tokens"]))

    def test_wrong_bytes_would_be_seen(self) -> None:
        """The control: with KV that is changed on its way, the tokens differ, so equal tokens prove something."""
        prompts = prompts_of(106)
        right = self.cold(self.first, prompts)
        switch = Path(os.environ["TERRACE_TEST_WRONG_LOADS"])
        switch.touch()
        try:
            made = self.loaded(self.first, prompts)
        finally:
            switch.unlink()
        self.assertEqual(made["stored"], [WHOLE])
        self.assertNotEqual(made["tokens"], right)
        self.forget(self.first)

    def test_after_the_daemons_restart_the_disk_has_it(self) -> None:
        prompts = prompts_of(107, 2)
        right = self.cold(self.first, prompts)
        self.restart()
        made = self.loaded(self.first, prompts)
        self.assertEqual((made["tokens"], made["stored"]), (right, [WHOLE] * 2))
        self.assertGreater(self.tiers()["disk"].bytes_read, 0)

    def test_damaged_bytes_on_disk_are_computed_again(self) -> None:
        prompts = prompts_of(108, 2)
        right = self.cold(self.first, prompts)
        with self.reconnecting(self.first, self.second):
            self.server.terminate()
            damage(self.server.folder / "state/terrace.extents")
            self.server.start()
        made = self.loaded(self.first, prompts)
        self.assertEqual((made["tokens"], made["stored"]), (right, [0] * 2))

    def test_a_daemon_that_is_killed_in_the_middle_changes_no_token(self) -> None:
        prompts = prompts_of(109, 2, 1000)
        right = self.cold(self.first, prompts)
        for delay in (0.0, 0.02, 0.1):
            self.forget(self.first)
            with self.reconnecting(self.first, self.second):
                self.first.begin("generate", prompts=prompts)
                time.sleep(delay)
                self.server.kill()
                made = self.first.answer()
                self.assertEqual(made["tokens"], right, delay)
                away = self.loaded(self.first, prompts)
                self.assertEqual((away["tokens"], away["cached"]), (right, [0] * 2))
                self.server.start()

    def test_a_daemon_that_stands_still_is_gone_on_without(self) -> None:
        prompts = prompts_of(110)
        right = self.cold(self.first, prompts)
        self.forget(self.first)
        self.server.pause()
        self.addCleanup(self.server.resume)
        made = self.first.call("generate", prompts=prompts)
        self.assertEqual((made["tokens"], made["cached"]), (right, [0]))

    def test_z_after_the_engines_restart_the_daemon_has_it(self) -> None:
        """The last, since it ends an engine."""
        prompts = prompts_of(111)
        right = self.cold(self.first, prompts)
        self.first.kill()
        type(self).first = self.engine()
        made = self.first.call("generate", prompts=prompts)
        self.assertEqual((made["tokens"], made["stored"]), (right, [WHOLE]))

    def restart(self) -> None:
        with self.reconnecting(self.first, self.second):
            self.server.terminate()
            self.server.start()


class SglangTwoRanks(OverDisk):
    """Tensor parallelism 2: two ranks, each with the KV of its own heads."""

    RANKS = 2
    connections = 3 * RANKS

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Daemon(host_bytes=64 << 20, disk_bytes=256 << 20)
        cls.addClassCleanup(cls.server.stop)
        cls.await_disk()

    def starting(self) -> Engine:
        engine = Engine(self.server.socket, "sglang_engine.py", TERRACE_TEST_RANKS=str(self.RANKS), SGLANG_CPU_OMP_THREADS_BIND="0|1")
        self.addCleanup(engine.kill)
        return engine.ready()

    def test_both_ranks_load_what_both_have_stored(self) -> None:
        engine = self.starting()
        prompts = prompts_of(120)
        first = engine.call("generate", prompts=prompts)
        self.assertEqual(first["cached"], [0])
        until(lambda: self.tiers()["disk"].objects >= self.RANKS * PAGES)
        until(lambda: engine.call("forget")["reset"])
        made = engine.call("generate", prompts=prompts)
        self.assertEqual((made["tokens"], made["stored"]), (first["tokens"], [WHOLE]))


@without_server
class SglangOnTwoMachines(unittest.TestCase):
    """Two machines that share a store."""

    def machine(self, store: SharedStore) -> tuple[Daemon, Engine]:
        daemon = store.machine(64 << 20)
        self.addCleanup(daemon.stop)
        engine = Engine(daemon.socket, "sglang_engine.py")
        self.addCleanup(engine.kill)
        return daemon, engine

    def test_what_one_computes_the_other_loads(self) -> None:
        store = SharedStore()
        self.addCleanup(store.stop)
        (here, one), (_, two) = self.machine(store), self.machine(store)
        one.ready()
        two.ready()
        prompts = prompts_of(130, 2, 1000)
        computed = one.call("generate", prompts=prompts)
        self.assertEqual(computed["cached"], [0, 0])
        until(lambda: objects_in_store(here) >= 2 * ((1000 + ANSWER - 1) // PAGE))
        here.terminate()
        loaded = two.call("generate", prompts=prompts)
        self.assertEqual((loaded["tokens"], loaded["stored"]), (computed["tokens"], [1000 // PAGE * PAGE] * 2))


if __name__ == "__main__":
    unittest.main()
