"""The interfaces of the newest vLLM for GPUs, which cannot be run without one."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest


class NewestVllm(unittest.TestCase):
    def test_the_tier_and_the_connector_agree_with_it(self) -> None:
        folder = os.environ.get("TERRACE_TEST_NEWEST_VLLM")
        if not folder:
            self.skipTest("it could not be installed")
        paths = f"{folder}:{os.environ['PYTHONPATH']}"
        where = "import vllm; print(vllm.__file__)"
        command = [sys.executable, "-c", f"{where}; import unittest; unittest.main('vllm_interface_test')"]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"{folder}/vllm/__init__.py", done.stdout)


if __name__ == "__main__":
    unittest.main()
