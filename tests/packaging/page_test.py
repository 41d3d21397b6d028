#!/usr/bin/env python3
"""The page for people in a real browser: a daemon under load, and what a headless Chromium makes of its page.

    page_test.py TERRACED TERRACE

Exit code 77 with a reason: Chromium is not installed.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TERRACED, TERRACE = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
PATIENCE = 120  # seconds; only turns a hang into a failure


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="terrace-page-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.socket = self.folder / "terrace.sock"

    def start(self, disk, until):
        """Starts the daemon with a disk tier in this folder, and returns when its log has these words."""
        (self.folder / "t.toml").write_text(f"""
[[listen]]
path = "{self.socket}"
[host]
bytes = "32MiB"
[disk]
path = ["{disk}"]
bytes = "64MiB"
[metrics]
address = "127.0.0.1:0"
""")
        self.daemon = subprocess.Popen([TERRACED, "--config", self.folder / "t.toml"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        said = []
        for line in self.daemon.stderr:
            said.append(line)
            if until in line:
                self.port = int(re.search(r"metrics are at 127\.0\.0\.1:(\d+)", "".join(said)).group(1))
                return
        self.fail("".join(said))

    def shown(self):
        """The words of the page, as the browser has them."""
        page = subprocess.run(["chromium", "--no-sandbox", "--headless=new", "--disable-gpu", "--virtual-time-budget=12000",
                               f"--user-data-dir={self.folder}/browser", "--dump-dom", f"http://127.0.0.1:{self.port}/"],
                              text=True, capture_output=True, timeout=PATIENCE).stdout
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)))
        self.assertNotIn("no answer", text)
        self.assertNotRegex(text, r"NaN|undefined|Infinity")
        return text

    def end(self):
        self.daemon.kill()
        self.daemon.wait()
        self.daemon.stderr.close()

    def run_command(self, *words):
        done = subprocess.run([TERRACE, *words], text=True, capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_it_shows_a_working_daemon(self):
        self.start(self.folder, until="disk tier of group default joined")
        trace = self.folder / "trace.jsonl"
        self.run_command("trace", "generate", "-o", str(trace), "--requests", "100", "--seed", "7")
        self.run_command("replay", str(trace), "--socket", str(self.socket), "--bytes-per-token", "1024", "--prefill-speed", "100")
        text = self.shown()
        for expected in ("tokens not computed", "default host", "32.0 MiB", "lookup", "end_inference", "evicted",
                         "not_stored", "none since the start"):
            self.assertIn(expected, text)
        self.assertRegex(text, r"\d+ (s|minutes|hours|days) computing saved, less the loads")
        # The daemon has kept what was before the page was opened.
        self.assertRegex(text, r"host \d+ % (disk \d+ % )?last \d+ s")
        self.assertNotIn("nothing in the last hour", text)

    def test_a_disk_tier_that_is_off_is_shown(self):
        self.start(self.folder / "away", until="disk tier of group default is off")
        text = self.shown()
        self.assertIn("default disk (off)", text)
        self.assertRegex(text, rf"{self.folder}/away tier off 0 B 0 B")
        self.assertIn("its directory does not exist; mount the device", text)


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        print("Chromium is not installed (package chromium): the page is not shown")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
