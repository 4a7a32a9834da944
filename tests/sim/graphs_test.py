"""Graphs: every replay is a launch of its own, with graph, node and number. On the software device, or on a GPU
with IKET_TEST_DEVICE=gpu."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

IKET = os.environ["IKET"]
GRAPHS = os.environ["IKET_SIM_GRAPHS"]
IMAGES = os.environ["IKET_SIM_APP_IMAGES"]
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")

# What graphs.cpp does: for each graph its nodes, {number: CTAs}, and how often it is launched so.
CAPTURED = {0: 2, 1: 3}
PLAN = [
    [(CAPTURED, 20)],
    [(CAPTURED, 5)],
    [({0: 4, 2: 2, 3: 3}, 5)],  # node 1 is the child
    [({0: 1}, 3), ({0: 5}, 3), ({0: 7}, 3)],
]
SPREAD = [PLAN[0], [(CAPTURED, 4)], *PLAN[2:]]
PLAIN = [6, 6]
WARPS_PER_CTA = 2


def expected_replays(graph, plan=None):
    nodes = [nodes for nodes, times in (plan or PLAN)[graph] for _ in range(times)]
    return {f"graph_exec_{graph}:{replay}": of_replay for replay, of_replay in enumerate(nodes)}


class Graphs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "out")

    def run_iket(self, *arguments):
        done = subprocess.run([IKET, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, check=False, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def profile(self, *how, options=()):
        self.run_iket("profile", "--device", DEVICE, "-o", self.output, *options, "--", GRAPHS,
                      os.path.join(IMAGES, "marked.cubin"), *how)
        (capture,) = glob.glob(os.path.join(self.output, "*.iketcap"))
        trace = os.path.join(self.output, "replays.trace.json")
        self.run_iket("export", capture, "--format", "trace.json", "-o", trace)
        self.run_iket("check", trace)
        with open(trace, encoding="utf-8") as file:
            return capture, json.load(file)

    def check_replays(self, trace, plan):
        """Every replay of the plan's graphs, and no other, with its nodes and all of its warps."""
        wanted = {}
        for graph in range(len(plan)):
            wanted.update(expected_replays(graph, plan))
        self.assertEqual(set(trace["graphLaunches"]), set(wanted))
        for key, nodes in wanted.items():
            launches = trace["graphLaunches"][key]
            numbers = trace["meta"]["iket"]["graphNodes"][key]
            self.assertEqual(dict(zip(numbers, (launch["gridDimX"] for launch in launches))), nodes)
            for launch in launches:
                self.assertEqual(len(launch["warpLifetimes"]), launch["gridDimX"] * WARPS_PER_CTA)
                places = [trace["locationTable"][warp["locIdx"]] for warp in launch["warpLifetimes"]]
                self.assertEqual(len({(place["ctaId"][0], place["warpId"]) for place in places}),
                                 len(places))

    def begins(self, trace, graph):
        return [min(warp["startTs"] for launch in trace["graphLaunches"][key]
                    for warp in launch["warpLifetimes"]) for key in expected_replays(graph)]

    def test_every_replay_is_complete_and_numbered(self):
        capture, trace = self.profile()
        self.run_iket("check", capture)
        self.check_replays(trace, PLAN)
        for graph in range(4):
            begins = self.begins(trace, graph)
            self.assertEqual(begins, sorted(begins))
        self.assertEqual([launch["gridDimX"] for launch in trace["launches"]], PLAIN)
        report = json.loads(self.run_iket("report", capture, "--json"))
        kernels = sum(len(nodes) for graph in range(4) for nodes in expected_replays(graph).values())
        launches = report["trust"]["launches"]
        self.assertEqual(launches, {"all": kernels + 2, "complete": kernels + 2, "partial": 0,
                                    "unknown": 0, "by_graphs": kernels, "replays_known": kernels})
        counters = report["trust"]["counters"]
        self.assertEqual((counters["launches_unmatched"], counters["launches_unseen"]), (0, 0))
        text = self.run_iket("report", capture)
        self.assertIn(f"{kernels} launches by graphs, {kernels} with the number", text)
        self.assertIn("4 executable graphs, launched 39 times", self.run_iket("info", capture))

    def test_equal_graphs_beside_each_other(self):
        # Which of the two is which is told by how often they ran.
        _, trace = self.profile("spread")
        self.check_replays(trace, SPREAD)

    def test_after_a_loss_no_replay_has_a_number(self):
        capture, trace = self.profile("many", options=("--ring", "4K"))
        trust = json.loads(self.run_iket("report", capture, "--json"))["trust"]
        self.assertGreater(trust["counters"]["records_lost"], 0)
        self.assertEqual(trace["graphLaunches"], {})
        self.assertEqual(trust["launches"]["replays_known"], 0)
        self.assertEqual(sum(len(launch["warpLifetimes"]) for launch in trace["launches"]),
                         trust["warps"] + trust["pieces_of_unknown_warps"])


if __name__ == "__main__":
    unittest.main()
