"""Rings in the host's memory: what was written is there, however the program ends. On the software device, or on a
GPU with IKET_TEST_DEVICE=gpu."""

import glob
import json
import os
import signal
import subprocess
import tempfile
import unittest

IKET = os.environ["IKET"]
EXAMPLES = os.environ["IKET_EXAMPLES"]
APP = os.environ["IKET_SIM_APP"]
IMAGES = os.environ["IKET_SIM_APP_IMAGES"]
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")


class Flight(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "out")

    def command(self, *words):
        return [IKET, "profile", "--device", DEVICE, "--flight", "--export", "none", "-o", self.output, *words]

    def profile(self, *words):
        return subprocess.run(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=120, check=False)

    def report(self):
        (capture,) = glob.glob(os.path.join(self.output, "*.iketcap"))
        done = subprocess.run([IKET, "report", "--json", capture], stdout=subprocess.PIPE, timeout=60, check=True)
        return json.loads(done.stdout)

    def check_saxpy(self, done, launches=5):
        self.assertRegex(done.stdout, r", ok\n$", done.stderr)
        trust = self.report()["trust"]
        self.assertEqual((trust["launches"]["all"], trust["launches"]["complete"]), (launches, launches))
        self.assertEqual(trust["counters"]["records_lost"], 0)
        self.assertRegex(done.stderr, r"device memory +0 B\n")

    def saxpy(self, *options):
        return self.profile(*options, "--", os.path.join(EXAMPLES, "saxpy_driver_marked"), "--n", "20224",
                            "--warmup", "1", "--iterations", "4")

    def test_is_as_complete_and_takes_no_device_memory(self):
        self.check_saxpy(self.saxpy())
        self.check_saxpy(self.saxpy("--overflow", "stream"))
        self.check_saxpy(self.saxpy("--launch", "1:3"), launches=2)
        self.check_saxpy(self.saxpy("--cta-sample", "3"))

    def test_a_trap_leaves_what_was_before_it(self):
        done = self.profile("--", APP, os.path.join(IMAGES, "marked.cubin"), "Trap")
        self.assertEqual(done.returncode, 1, done.stderr)
        (launch,) = self.report()["standstill"]
        self.assertEqual({group["last_event"] for group in launch["groups"]}, {"about to trap"})

    def test_a_kernel_that_hangs_in_a_program_that_is_killed(self):
        with subprocess.Popen(self.command("--", APP, os.path.join(IMAGES, "marked.cubin"), "Endless"),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "running\n")
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as children:
                child = int(children.read().split()[0])
            os.kill(child, signal.SIGKILL)
            self.assertEqual(process.wait(timeout=60), 128 + signal.SIGKILL, process.stderr.read())
        (launch,) = self.report()["standstill"]
        self.assertEqual((launch["kernel"], launch["warps_running"]), ("Endless", 4))


if __name__ == "__main__":
    unittest.main()
