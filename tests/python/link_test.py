"""What the log of an engine says while the daemon is away."""

from __future__ import annotations

import logging
import queue
import tempfile
import unittest
from unittest import mock

from terrace import link

from daemon import PATIENCE, Daemon


class Messages(logging.Handler):
    """The messages of a logger, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.all: queue.Queue[str] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.all.put(record.getMessage())


class WithoutDaemon(unittest.TestCase):
    def test_the_log_says_why_at_once_and_reminds_with_what_to_do(self) -> None:
        log = logging.getLogger(f"{__name__}.reminds")
        log.propagate = False
        messages = Messages()
        log.addHandler(messages)
        self.addCleanup(log.removeHandler, messages)
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(link, "REMIND_SECONDS", 0):
            path = f"{folder}/terrace.sock"
            going = link.Link(path, "test", [], None, log)
            self.addCleanup(going.close)
            first = messages.all.get(timeout=PATIENCE)
            self.assertRegex(first, f"^cannot use the Terrace daemon at {path}: .*; trying again$")
            for _ in range(2):
                reminder = messages.all.get(timeout=PATIENCE)
                self.assertIn(f"without the Terrace daemon at {path} for ", reminder)
                self.assertIn("start it (systemctl start terraced)", reminder)
            self.assertIsNone(going.session)

    def test_its_user_is_told_of_each_session_and_of_its_end(self) -> None:
        log = logging.getLogger(f"{__name__}.changes")
        log.propagate = False
        changes: queue.Queue[int] = queue.Queue()
        server = Daemon()
        self.addCleanup(server.stop)
        going = link.Link(server.socket, "test", [], None, log, changes.put)
        self.assertEqual(changes.get(timeout=PATIENCE), 1)
        server.kill()
        self.assertEqual(changes.get(timeout=PATIENCE), -1)
        server.start()
        self.assertEqual(changes.get(timeout=PATIENCE), 1)
        going.close()
        self.assertEqual(changes.get(timeout=PATIENCE), -1)
        self.assertTrue(changes.empty())

    def test_the_log_is_quiet_between_reminders(self) -> None:
        log = logging.getLogger(f"{__name__}.quiet")
        log.propagate = False
        messages = Messages()
        log.addHandler(messages)
        self.addCleanup(log.removeHandler, messages)
        attempts: queue.Queue[None] = queue.Queue()
        attempt = link.Link._attempt

        def counted(self: link.Link) -> link.Session:
            attempts.put(None)
            return attempt(self)

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(link.Link, "_attempt", counted):
            going = link.Link(f"{folder}/terrace.sock", "test", [], None, log)
            self.addCleanup(going.close)
            for _ in range(4):
                attempts.get(timeout=PATIENCE)
            self.assertEqual(messages.all.qsize(), 1)
