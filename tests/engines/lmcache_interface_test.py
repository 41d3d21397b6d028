"""The connector against the LMCache that is installed: drift of its interface shows here first."""

from __future__ import annotations

import importlib.util
import inspect
import unittest

if importlib.util.find_spec("lmcache") is None:
    raise unittest.SkipTest("LMCache is not installed here")

from lmcache.v1.distributed.l2_adapters import native_connector_l2_adapter as native
from lmcache.v1.distributed.l2_adapters import create_l2_adapter
from lmcache.v1.distributed.l2_adapters.native_plugin_l2_adapter import NativePluginL2AdapterConfig
from lmcache.v1.mp_observability import otel_init
from prometheus_client import REGISTRY

from daemon import Daemon
from terrace.lmcache.connector import TerraceConnector
from terrace.lmcache.keys import family_of
from waiting import until


class Interface(unittest.TestCase):
    def test_lmcache_makes_an_adapter_of_the_connector(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        adapter = create_l2_adapter(NativePluginL2AdapterConfig.from_dict({
            "module_path": "terrace.lmcache.connector", "class_name": "TerraceConnector",
            "adapter_params": {"socket": daemon.socket},
        }))
        self.addCleanup(adapter.close)
        self.assertIsInstance(adapter, native.NativeConnectorL2Adapter)

    def test_the_registry_that_lmcache_serves_says_whether_it_has_a_daemon(self) -> None:
        def connected() -> float | None:
            return REGISTRY.get_sample_value("terrace_connected", {"adapter": "lmcache"})

        before = connected() or 0
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        connector = TerraceConnector(socket=daemon.socket)
        self.addCleanup(connector.close)
        until(lambda: connected() == before + 1)  # that for lookups; the others come with the first load and store
        daemon.kill()
        until(lambda: connected() == before)
        daemon.start()
        until(lambda: connected() == before + 1)
        self.assertIn("start_http_server", inspect.getsource(otel_init), "LMCache serves the default registry")

    def test_what_it_calls_exists(self) -> None:
        source = inspect.getsource(native.NativeConnectorL2Adapter)
        called = {word.split("(")[0] for word in source.split("self._client.")[1:]}
        optional = {"submit_batch_delete"}
        missing = {name for name in called - optional if not callable(getattr(TerraceConnector, name, None))}
        self.assertEqual(missing, set())
        self.assertIn("submit_batch_exists", called, "the source is read as expected")

    def test_keys_have_the_form_that_the_connector_reads(self) -> None:
        from lmcache.v1.distributed.api import ObjectKey

        fields = inspect.signature(ObjectKey).parameters
        given = {"chunk_hash": bytes(range(32)), "model_name": "org/model", "kv_rank": 0x01000100}
        self.assertLessEqual(set(given), set(fields))
        family, digest = family_of(native._object_key_to_string(ObjectKey(**given)))
        self.assertEqual((family.model, digest), ("org/model", bytes(range(32))))


if __name__ == "__main__":
    unittest.main()
