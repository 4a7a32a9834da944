"""`--map-early`: rings are there before the first kernel of any kind, and what is recorded is the same. On the software
device, or on a GPU with IKET_TEST_DEVICE=gpu."""

import glob
import os
import subprocess
import tempfile
import unittest

IKET = os.environ["IKET"]
PROGRAM = os.environ["IKET_SIM_MAP_EARLY"]
IMAGES = os.environ["IKET_SIM_APP_IMAGES"]
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")
RINGS = 4 << 20  # bytes; that of the smallest GPU take more


class MapEarly(unittest.TestCase):
    def profile(self, *options, images):
        """Bytes that each launch took from the free memory, the exit code, what was said, and the captures."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        done = subprocess.run(
            [IKET, "profile", "--device", DEVICE, "--export", "none", "-o", folder.name, *options, "--", PROGRAM,
             *(os.path.join(IMAGES, image) for image in images)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, text=True)
        taken = [int(line) for line in done.stdout.split() if line.isdigit()]
        self.assertEqual(len(taken), len(images), done.stderr)
        return taken, done.returncode, done.stderr, glob.glob(os.path.join(folder.name, "*.iketcap"))

    def test_before_the_first_kernel(self):
        (plain, marked), code, said, captures = self.profile("--map-early", images=("plain.cubin", "marked.cubin"))
        self.assertGreater(plain, RINGS)
        self.assertLess(marked, RINGS)
        self.assertEqual((code, len(captures)), (0, 1), said)
        self.assertRegex(said, r"events +4 kept, 0 lost")

    def test_not_unless_asked_for(self):
        (plain, marked), code, said, captures = self.profile(images=("plain.cubin", "marked.cubin"))
        self.assertLess(plain, RINGS)
        self.assertGreater(marked, RINGS)
        self.assertEqual((code, len(captures)), (0, 1), said)
        self.assertRegex(said, r"events +4 kept, 0 lost")

    def test_a_program_without_marks_records_nothing(self):
        (plain,), code, said, captures = self.profile("--map-early", images=("plain.cubin",))
        self.assertGreater(plain, RINGS)
        self.assertEqual((code, captures), (4, []), said)
        self.assertRegex(said, r"nothing was recorded: no process loaded GPU code")

    def test_rings_in_the_hosts_memory_are_not(self):
        (plain, _), code, said, captures = self.profile("--map-early", "--flight",
                                                        images=("plain.cubin", "marked.cubin"))
        self.assertLess(plain, RINGS)
        self.assertEqual((code, len(captures)), (0, 1), said)

    def test_what_does_not_fit_is_said_by_whoever_needs_it(self):
        (plain, _), _, said, _ = self.profile("--map-early", "--memory", "4M", images=("plain.cubin", "marked.cubin"))
        self.assertLess(plain, RINGS + (4 << 20))
        self.assertEqual(said.count("--memory"), 1, said)


if __name__ == "__main__":
    unittest.main()
