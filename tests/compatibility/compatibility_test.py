#!/usr/bin/env python3
"""The promise of CHANGELOG.md: a daemon speaks the protocol of the release before, and reads its volumes. The clients and the volume
here are recordings (record.py), so a change of either format is seen by what they get.

If a test fails, the change needs a new version and has to serve the recorded one as well; the recordings stay as they are.

    compatibility_test.py TERRACED FLATC
"""

import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import recorded_client  # noqa: E402
from recorded_client import CHUNKS, DISK, KV, MEMORY, READY, REGION, ROOT, STATE, VOLUME_FILE, Client, Refused, Schema, constant, contents_of, object_of  # noqa: E402

TERRACED, FLATC = sys.argv[1:3]
UNSUPPORTED = 9
EACH = KV + STATE
PROTOCOL = constant("src/protocol/kinds.hpp", "version")
VOLUME = constant("src/storage/superblock.hpp", "superblock_version")


def recorded(pattern):
    """The versions that there are recordings of, up to one before today's."""
    return sorted(int(re.search(r"_(\d+)", file.name)[1]) for file in HERE.glob(pattern))


class Served(unittest.TestCase):
    def serve(self, configuration, *lines, volume=None):
        """A daemon whose log has one of these lines: that line."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="terrace-compatibility-"))
        self.addCleanup(shutil.rmtree, self.folder)
        if volume is not None:
            (self.folder / VOLUME_FILE).write_bytes(volume)
        self.daemon = recorded_client.Daemon(TERRACED, self.folder, configuration)
        self.addCleanup(self.daemon.end)
        line = self.daemon.await_line(*lines)
        self.assertTrue(line, self.daemon.log)
        return line

    def client(self, protocol):
        recording = json.loads((HERE / f"protocol_{protocol}.json").read_text())
        self.answers = recording["answers"]
        client = Client(self.daemon.socket, recording["frames"], Schema((HERE / f"protocol_{protocol}.fbs").read_text()))
        self.addCleanup(client.close)
        return client


class Protocol(Served):
    def test_each_version_that_is_promised_has_its_recording(self):
        for version in (PROTOCOL - 1, PROTOCOL):
            if version >= min(recorded("protocol_*.json")):
                self.assertIn(version, recorded("protocol_*.json"), "run record.py")

    def test_the_schema_of_today_is_one_that_the_recorded_ones_may_become(self):
        today = Schema(re.sub(r"//.*", "", (ROOT / "src/protocol/terrace.fbs").read_text()))
        for version in recorded("protocol_*.fbs"):
            if version >= PROTOCOL - 1:
                before = Schema((HERE / f"protocol_{version}.fbs").read_text())
                for table, fields in before.fields.items():  # flatc says nothing of fields that are gone
                    self.assertEqual(today.fields[table][:len(fields)], fields, table)
                done = subprocess.run([FLATC, "--conform", HERE / f"protocol_{version}.fbs", ROOT / "src/protocol/terrace.fbs"],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_recorded_clients_are_served(self):
        for version in recorded("protocol_*.json"):
            if version >= PROTOCOL - 1:
                with self.subTest(protocol=version):
                    self.serve(MEMORY, READY)
                    self.scenario(version)

    def scenario(self, version):
        client = self.client(version)
        told = client.greet()
        self.assertEqual((told["version"], told["group"], len(told["boot"])), (version, "default", 16))
        self.assertLessEqual({"mapped_arena", "staging", "sha256_cbor", "sha256", "xxh3_128"}, set(told["features"]))
        region = client.register(REGION)
        for name, answers in self.answers.items():
            self.assertEqual(bytes(client.open_space(name)["fingerprint"]).hex(), answers["fingerprint"], name)
            self.assertEqual(bytes(client.ask("lookup_tokens", "LookupAnswer")["digests"]).hex(), answers["digests"], name)
        client.open_space("open_space")
        chain = contents_of(range(1, CHUNKS + 1))
        region[:len(chain)] = chain
        self.assertEqual(client.ask("store", "StoreAnswer")["stored_chunks"], CHUNKS)
        self.assertEqual(client.ask("store_tokens", "StoreAnswer")["stored_chunks"], 2)
        self.assertEqual(client.ask("lookup_tokens", "LookupAnswer")["found_chunks"], 2)
        found = client.look_up("lookup")
        self.assertEqual((found["requested_chunks"], found["found_chunks"], found["tiers"]), (CHUNKS, CHUNKS, [1] * CHUNKS))
        self.assertTrue(client.load("load", region, range(1, CHUNKS + 1)))
        self.read_in_place(client)
        client.ask("release", "ReleaseAnswer")
        region[:2 * EACH] = bytes(2 * EACH)
        self.assertEqual(client.ask("load_prefix", "LoadAnswer")["delivered_chunks"], 2)
        self.assertEqual(region[:2 * EACH], chain[:2 * EACH])
        self.write_in_place(client)
        client.ask("end_inference", "EndInferenceAnswer")
        group, = client.ask("status", "StatusAnswer")["groups"]
        self.assertEqual([tier["tier"] for tier in group["tiers"]], ["host"])
        self.assertEqual(client.ask("clear_space", "ClearAnswer")["objects"], 2 * (CHUNKS + 2 + 1))
        self.assertFalse(client.ask("lookup", "LookupAnswer")["found_chunks"])

    def read_in_place(self, client):
        locations = client.ask("read_lease", "ReadLeaseAnswer")["locations"]
        self.assertEqual(len(locations), CHUNKS)
        for chunk, (offset, size, segment, _) in enumerate(locations, 1):
            self.assertEqual(client.map(segment)[offset:offset + size], object_of(chunk, 0))

    def write_in_place(self, client):
        reserved = client.ask("reserve", "ReserveAnswer")
        written, at = contents_of([61]), 0
        for offset, size, segment, _ in reserved["locations"]:
            client.map(segment)[offset:offset + size] = written[at:at + size]
            at += size
        client.known["reservation"] = reserved["reservation"].to_bytes(8, "little")
        self.assertEqual(client.ask("commit", "CommitAnswer")["stored_chunks"], 1)
        self.assertEqual(client.ask("lookup_committed", "LookupAnswer")["found_chunks"], 1)

    def test_other_versions_are_told_which_ones_are_spoken(self):
        self.serve(MEMORY, READY)
        spoken = [str(version) for version in recorded("protocol_*.json") if version >= PROTOCOL - 1]
        for version in (int(spoken[0]) - 1, PROTOCOL + 1, 0xFFFFFFFF):
            client = self.client(PROTOCOL)
            hello = bytes.fromhex(client.frames["hello"])
            own = PROTOCOL.to_bytes(4, "little")
            at = hello.rindex(own, 0, hello.index(b"recorded"))
            other = hello[:at] + version.to_bytes(4, "little") + hello[at + 4:]
            client.send(other)
            with self.assertRaises(Refused) as refused:
                client.receive("HelloAnswer")
            self.assertEqual(refused.exception.code, UNSUPPORTED)
            self.assertIn(f"protocol version {version} is not supported; expected {' or '.join(spoken)}", str(refused.exception))


class Volumes(Served):
    def recording(self, version):
        volume = gzip.decompress((HERE / f"volume_{version}.gz").read_bytes())
        text = pathlib.Path("/etc/machine-id")
        machine = text.read_text().strip() if text.exists() else ""
        return recorded_client.give_to_machine(volume, bytes.fromhex(machine) if re.fullmatch("[0-9a-f]{32}", machine) else bytes(16))

    def test_each_version_that_is_promised_has_its_recording(self):
        for version in (VOLUME - 1, VOLUME):
            if version >= min(recorded("volume_*.gz")):
                self.assertIn(version, recorded("volume_*.gz"), "run record.py")

    def test_recorded_volumes_are_served(self):
        for version in recorded("volume_*.gz"):
            if version >= VOLUME - 1:
                with self.subTest(volume=version):
                    self.scenario(version)

    def scenario(self, version):
        self.assertIn("joined", self.serve(DISK, "joined", "is off", volume=self.recording(version)))
        client = self.client(min(recorded("protocol_*.json")))
        client.greet()
        region = client.register(REGION)
        client.open_space("open_space")
        for lookup, load, chunks in (("lookup", "load", range(1, CHUNKS + 1)), ("lookup_late", "load_late", [41, 42])):
            found = client.look_up(lookup)
            self.assertEqual(found["tiers"], [2] * len(chunks), "all are on disk")
            self.assertTrue(client.load(load, region, chunks))
        self.assertFalse(client.ask("lookup_evicted", "LookupAnswer")["found_chunks"], "it was removed behind the checkpoint")
        client.open_space("open_other_space")
        self.assertFalse(client.ask("lookup", "LookupAnswer")["found_chunks"], "it was cleared")

    def test_a_version_that_nobody_knows_is_left_alone(self):
        volume = bytearray(self.recording(VOLUME))
        for at in (0, 4096):
            volume[at + 8] = VOLUME + 1
        line = self.serve(DISK, "joined", "is off", volume=bytes(volume))
        self.assertIn(f"volume version {VOLUME} was expected, {VOLUME + 1} ", line)
        self.daemon.end()
        self.assertEqual((self.folder / VOLUME_FILE).read_bytes(), bytes(volume))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
