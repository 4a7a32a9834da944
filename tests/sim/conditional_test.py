"""Graphs of which the GPU decides what runs (tests/guest/programs/conditional.cu): loops, branches, launches by the
device. Each run is a launch of its own, and has the number of its graph's launch where that is certain. From
conditional.iketcap, recorded on an H200 by `iket profile -- conditional`, and with IKET_TEST_DEVICE=gpu on a GPU."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

IKET = os.environ["IKET"]
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")
CAPTURE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "conditional.iketcap")


class Conditional(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_iket(self, *arguments):
        done = subprocess.run([IKET, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              check=False, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check(self, capture):
        path = os.path.join(self.folder, "conditional.trace.json")
        self.run_iket("export", capture, "--format", "trace.json", "-o", path)
        self.run_iket("check", capture, path)
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        runs = {}
        for key, launches in trace["graphLaunches"].items():
            nodes = trace["meta"]["iket"]["graphNodes"][key]
            runs[key] = [(node, launch["kernelName"]) for node, launch in zip(nodes, launches)]
            for launch in launches:
                self.assertEqual(len(launch["warpLifetimes"]), 2 * launch["gridDimX"])
        decide, body, sums = (0, "Decide"), (2, "Body"), (3, "Sum")
        self.assertEqual(runs, {
            "graph_exec_0:0": [decide, body, body, sums],
            "graph_exec_0:1": [decide, sums],
            "graph_exec_0:2": [decide, body, body, body, sums],
            "graph_exec_1:0": [(1, "Branch")],
        })
        # How often the device launches a graph no log says: its runs have no number.
        self.assertEqual(sorted(launch["kernelName"] for launch in trace["launches"]),
                         ["Later", "Later", "Launcher", "Launcher"])
        for launch in trace["launches"]:
            self.assertEqual(len(launch["warpLifetimes"]), 2 * launch["gridDimX"])
        trust = json.loads(self.run_iket("report", "--json", capture))["trust"]
        self.assertEqual(trust["launches"], {"all": 16, "complete": 16, "partial": 0, "unknown": 0, "by_graphs": 16,
                                             "replays_known": 12})
        self.assertEqual(trust["counters"]["launches_unseen"], 0)

    @unittest.skipUnless(os.path.exists(CAPTURE), "the captures of the repository are not here")
    def test_of_an_h200(self):
        self.check(CAPTURE)

    @unittest.skipUnless(DEVICE == "gpu", "needs a GPU")
    def test_each_run_is_a_launch(self):
        said = self.run_iket("profile", "--export", "none", "-o", self.folder, "--",
                             os.path.join(os.environ["IKET_GUESTS"], "conditional"))
        self.assertEqual(said, "decided 3, bodies 5, sums 3, branches 1, later 2\n")
        (capture,) = glob.glob(os.path.join(self.folder, "*.iketcap"))
        self.check(capture)


if __name__ == "__main__":
    unittest.main()
