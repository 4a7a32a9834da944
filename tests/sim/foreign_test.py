"""Kernels that other front ends marked, as NVIDIA's run-iket saved and traced them: the same ranges, markers and
payloads, and the same results as without us. On the software device, or on a GPU with IKET_TEST_DEVICE=gpu."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

import foreign_events

IKET = os.environ["IKET"]
FOREIGN = os.environ["IKET_SIM_FOREIGN"]
DATA = os.environ["IKET_FOREIGN_DATA"]
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")

# CTAs, threads, CTAs of a cluster, buffers, number: as zoo.py, cpp.cu and tilelang_zoo.py launch them.
LAUNCHES = {
    "types": (2, 64, 1, 1, 5),
    "ranges": (4, 128, 2, 1, 5),
    "cpp": (2, 64, 1, 1, 5),
    "many": (2, 64, 1, 1, 5),
    "tilelang": (4, 128, 1, 3, 0),
}


class Foreign(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "out")

    def command(self, name):
        with open(os.path.join(DATA, name + ".json"), encoding="utf-8") as file:
            expected = json.load(file)
        ctas, threads, cluster, buffers, number = LAUNCHES[name]
        return expected, [FOREIGN, os.path.join(DATA, name + ".cubin"), expected["kernel"], str(ctas), str(threads),
                          str(cluster), str(buffers), str(number)]

    def profile(self, command, *options):
        done = subprocess.run([IKET, "profile", "--device", DEVICE, "-o", self.output, "--clobber", *options, "--export",
                               "trace.json", "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, check=False, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (capture,) = glob.glob(os.path.join(self.output, "*.iketcap"))
        (trace,) = glob.glob(os.path.join(self.output, "*.trace.json"))
        for file in (capture, trace):
            checked = subprocess.run([IKET, "check", file], stdout=subprocess.PIPE, timeout=60, check=False, text=True)
            self.assertEqual(checked.returncode, 0, checked.stdout)
        with open(trace, encoding="utf-8") as file:
            return done.stdout, json.load(file)

    def profile_equal(self, command):
        """What the kernel computes is what it computes without us."""
        library = {} if DEVICE == "gpu" else {"LD_LIBRARY_PATH": os.environ["IKET_SIM"]}
        alone = subprocess.run(command, env={**os.environ, **library}, stdout=subprocess.PIPE, timeout=60, check=True,
                               text=True).stdout
        said, trace = self.profile(command)
        self.assertTrue(said.startswith(alone), f"{alone!r} became {said!r}")
        return alone, trace

    def check_kernel(self, name):
        expected, command = self.command(name)
        _, trace = self.profile_equal(command)
        launch, events = foreign_events.events_of(trace)
        self.assertEqual(launch["kernelName"], expected["kernel"])
        self.assertEqual(len(launch["warpLifetimes"]), expected["warps"])
        self.assertEqual(events, expected["events"])

    def test_types_of_payloads(self):
        self.check_kernel("types")

    def test_ranges_tokens_and_guarded_sites(self):
        self.check_kernel("ranges")

    def test_forty_names(self):
        self.check_kernel("many")

    def test_metadata_by_hand(self):
        self.check_kernel("cpp")

    def test_tilelang(self):
        self.check_kernel("tilelang")

    def marks_by_hand(self, kernel):
        image = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "by_hand.cubin")
        # One CTA: two would add to the same values at once.
        alone, trace = self.profile_equal([FOREIGN, image, kernel, "1", "64", "1", "1", "5"])
        return float(alone), len(trace["launches"][0]["markers"])

    def test_time_stamps_that_the_program_uses(self):
        total, marks = self.marks_by_hand("used_stamp")
        self.assertEqual(total - sum(range(4096)), 64 * 11000)
        self.assertEqual(marks, 2)

    def test_guards_that_change_lanes(self):
        _, marks = self.marks_by_hand("lanes_in_turns")
        self.assertEqual(marks, 10)

    def pmevents(self, *options):
        image = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "pmevent.cubin")
        done = subprocess.run([IKET, "profile", "--device", DEVICE, "-o", self.output, "--clobber", *options,
                               "--export", "trace.json", "--", FOREIGN, image, "pmevents", "2", "64", "1", "1", "5"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, text=True)
        traces = glob.glob(os.path.join(self.output, "*.trace.json"))
        if not traces:
            return done, None
        with open(traces[0], encoding="utf-8") as file:
            trace = json.load(file)
        counts = {}
        for marker in trace["launches"][0]["markers"]:
            name = trace["stringTable"][marker["markerNameIdx"]]
            counts[name] = counts.get(name, 0) + 1
        return done, counts

    def test_pmevents_that_are_given_names(self):
        # Four warps with five each; of those, two with one more.
        _, counts = self.pmevents("--pmevent", "5=step")
        self.assertEqual(counts, {"step": 22})
        _, counts = self.pmevents("--pmevent", "5=step", "--pmevent", "9=half way")
        self.assertEqual(counts, {"step": 22, "half way": 4})

    def test_other_pmevents_are_nobodys(self):
        done, counts = self.pmevents("--pmevent", "77=never")
        self.assertIsNone(counts)
        self.assertIn("nothing was recorded", done.stderr)
        self.assertIn("--pmevent", done.stderr)


if __name__ == "__main__":
    unittest.main()
