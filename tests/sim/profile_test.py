"""`iket profile` of the examples' driver forms on the software device."""

import glob
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

IKET = os.environ["IKET"]
EXAMPLES = os.environ["IKET_EXAMPLES"]


def environment(**more):
    return {**os.environ, "LD_LIBRARY_PATH": os.environ["IKET_SIM"], **more}


class Profile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(folder.name, "out")

    def profile(self, program, *arguments, options=(), **variables):
        command = [IKET, "profile", "-o", self.output, *options, "--"]
        command += [os.path.join(EXAMPLES, program), *arguments]
        return subprocess.run(
            command,
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
            text=True,
        )

    def test_saxpy_is_right_and_complete(self):
        done = self.profile(
            "saxpy_driver_marked", "--n", "100000", "--warmup", "0", "--iterations", "1"
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"saxpy_driver_marked n=100000: .*, ok")
        self.assertRegex(done.stdout, r"launches +1: 1 complete, 0 partial;")
        self.assertRegex(done.stdout, r"events +[\d,]+ kept, 0 lost")
        # Each warp of 32 threads takes a step an element: as many steps as 100000 / 32.
        steps = re.search(r"\bstep .* ([\d,]+) times", done.stdout)
        self.assertIsNotNone(steps, done.stdout)
        self.assertEqual(int(steps.group(1).replace(",", "")), 100000 // 32)

    def test_gemm_is_right_and_complete(self):
        done = self.profile(
            "gemm_mma_driver_marked", "--size", "256", "--warmup", "0", "--iterations", "1"
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"gemm_mma_driver_marked 256x256x256: .*, ok")
        self.assertRegex(done.stdout, r"launches +1: 1 complete, 0 partial;")

    def test_device_is_labelled(self):
        self.profile("saxpy_driver_marked", "--n", "1000", "--warmup", "0", "--iterations", "1")
        (capture,) = glob.glob(os.path.join(self.output, "*.iketcap"))
        info = subprocess.run(
            [IKET, "info", capture], stdout=subprocess.PIPE, timeout=60, check=True, text=True
        )
        self.assertIn("software device", info.stdout)

    def test_many_launches_on_one_stream_keep_their_order(self):
        done = self.profile(
            "saxpy_driver_marked", "--n", "2000", "--warmup", "3", "--iterations", "20"
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"launches +23: 23 complete, 0 partial;")

    def test_marks_change_no_result_without_a_collector(self):
        for program in ("saxpy_driver", "saxpy_driver_marked"):
            done = subprocess.run(
                [os.path.join(EXAMPLES, program), "--n", "10000", "--iterations", "1"],
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=120,
                check=False,
                text=True,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r", ok\n$")

    def test_a_runtime_program_is_told_what_works(self):
        done = self.profile("saxpy_marked", "--n", "1000", "--iterations", "1")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count("iket-sim: the CUDA runtime (<<<>>> programs)"), 1)

    def test_interrupt_ends_program_and_keeps_the_account(self):
        command = [IKET, "profile", "-o", self.output, "--"]
        command += [os.path.join(EXAMPLES, "saxpy_driver_marked"), "--iterations", "20000"]
        running = subprocess.Popen(
            command,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        deadline = time.monotonic() + 60
        while not glob.glob(os.path.join(self.output, "*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)
        said, _ = running.communicate(timeout=120)
        self.assertNotEqual(running.returncode, 0, said)
        self.assertNotEqual(glob.glob(os.path.join(self.output, "*.iketcap")), [], said)


if __name__ == "__main__":
    unittest.main()
