"""The comparer says yes to run-iket's own traces, and no to each way in which two collectors could differ."""
import contextlib
import copy
import gzip
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare_traces  # noqa: E402

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/run-iket")
NAMES = ("cpp", "one-cluster", "ranges", "tilelang-payload", "types", "warp-trace")


def trace_of(name):
    with open(os.path.join(DATA, name, "trace.json"), encoding="utf-8") as file:
        return json.load(file)


def retimed(trace, time_of):
    """`trace` with each point in time t at time_of(t)."""
    for launch in trace["launches"]:
        for row in launch["markers"]:
            row["timestamp"] = time_of(row["timestamp"])
        for row in launch["ranges"] + launch["warpLifetimes"]:
            row["startTs"], row["endTs"] = time_of(row["startTs"]), time_of(row["endTs"])
            for event in row.get("internalEvents", ()):
                event["timestamp"] = time_of(event["timestamp"])
    return trace


def longer(row, ns):
    """A range that ends later, and nothing else does."""
    row["endTs"] += ns
    row["internalEvents"][1]["timestamp"] += ns


def held_up(launch, row, ns):
    """The warp of that range is held up in it: all that comes behind is later."""
    place, end = row["warpLocIdxs"][0], row["endTs"]
    for other in launch["ranges"]:
        if other["warpLocIdxs"][0] != place:
            continue
        for key, event in zip(("startTs", "endTs"), other["internalEvents"]):
            if other[key] >= end:
                other[key] += ns
                event["timestamp"] += ns


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.trace = trace_of("ranges")
        self.launch = self.trace["launches"][0]

    def compare(self, theirs, ours, *options):
        paths = []
        for name, trace in (("theirs", theirs), ("ours", ours)):
            paths.append(os.path.join(self.folder, f"{name}.trace.json"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                json.dump(trace, file)
        return self.run_main(*paths, *options)

    def run_main(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = compare_traces.main(list(arguments))
        return code, out.getvalue()

    def assert_same(self, theirs, ours, *options):
        code, out = self.compare(theirs, ours, *options)
        self.assertEqual((code, "difference (" in out), (0, False), out)
        return out

    def assert_differs(self, kinds, theirs, ours, *options):
        """Exactly these kinds of differences are found."""
        code, out = self.compare(theirs, ours, *options)
        found = {line.split("(")[1].split(")")[0] for line in out.splitlines() if line.startswith("difference")}
        self.assertEqual((code, found), (1, set(kinds)), out)
        self.assertIn("differences** |", out)
        return out

    def range_named(self, name, launch=None):
        index = self.trace["stringTable"].index(name)
        return next(row for row in (launch or self.launch)["ranges"] if row["rangeNameIdx"] == index)

    def assert_change_is_found(self, kinds, change, *options):
        theirs = copy.deepcopy(self.trace)
        change()
        return self.assert_differs(kinds, theirs, self.trace, *options)

    # --- what is the same

    def test_traces_equal_themselves(self):
        for name in NAMES:
            out = self.assert_same(trace_of(name), trace_of(name), "--ns", "0", "--title", name)
            self.assertIn(f"| {name} | ", out)

    def test_the_row_counts_what_was_compared(self):
        self.assertIn("| traces | 1 | 16 | 132 | 12 | 88 | 0 ns | 0 ns | same |", self.assert_same(self.trace, self.trace))
        types = trace_of("types")
        self.assertIn("| traces | 1 | 4 | 0 | 52 | 48 | 0 ns | 0 ns | same |", self.assert_same(types, types))

    def test_another_axis_of_time(self):
        self.assert_same(trace_of("ranges"), retimed(self.trace, lambda t: t - 1795957476000000000), "--ns", "0")

    def test_ticks_and_nanoseconds(self):
        """Ours stamps within the tick that theirs rounds down to."""
        for factor in range(1, 20):
            self.assert_same(self.trace, retimed(trace_of("ranges"), lambda t, f=factor: t + t // 32 * f % 32))

    def tied(self, *ends):
        """The trace with one warp whose ranges `load` are these, (begin, end), and nothing else."""
        row = self.range_named("load")
        trace = copy.deepcopy(self.trace)
        launch = trace["launches"][0]
        launch["markers"], launch["ranges"], launch["warpLifetimes"] = [], [], []
        for begin, end in ends:
            made = copy.deepcopy(row)
            made["startTs"], made["endTs"] = begin, end
            for event, time in zip(made["internalEvents"], (begin, end)):
                event["timestamp"] = time
            launch["ranges"].append(made)
        return trace

    def test_ranges_of_one_name_that_begin_in_one_tick(self):
        for rows in ([(0, 0), (0, 96)], [(0, 96), (0, 0)]):  # one after the other
            self.assert_same(self.tied(*rows), self.tied((1, 5), (9, 101)), "--ns", "32")
        for rows in ([(0, 96), (0, 32)], [(0, 32), (0, 96)]):  # one in the other
            self.assert_same(self.tied(*rows), self.tied((1, 101), (9, 36)), "--ns", "32")
        self.assert_differs(["duration", "gap"], self.tied((0, 0), (0, 96)), self.tied((1, 50), (55, 101)), "--ns", "32")

    def test_the_order_of_rows_and_indices_means_nothing(self):
        other = copy.deepcopy(self.trace)
        launch = other["launches"][0]
        for key in ("ranges", "markers", "warpLifetimes"):
            launch[key].reverse()
        last = len(other["locationTable"]) - 1
        other["locationTable"].reverse()
        for row in launch["ranges"]:
            row["warpLocIdxs"] = [last - index for index in row["warpLocIdxs"]]
        for row in launch["markers"] + launch["warpLifetimes"]:
            row["locIdx"] = last - row["locIdx"]
        self.assert_same(self.trace, other, "--ns", "0")

    def test_compressed(self):
        path = os.path.join(self.folder, "x.trace.json.gz")
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump(self.trace, file)
        self.assertEqual(self.run_main(path, path)[0], 0)

    # --- what is not

    def test_a_missing_range(self):
        self.assert_change_is_found(["range"], lambda: self.launch["ranges"].remove(self.range_named("outer")))

    def test_one_of_many_ranges_is_missing(self):
        code, out = self.compare(copy.deepcopy(self.trace), self.trace)
        self.assertEqual(code, 0, out)
        theirs = copy.deepcopy(self.trace)
        self.launch["ranges"].remove(self.range_named("mma"))
        code, out = self.compare(theirs, self.trace)
        self.assertEqual(code, 1)
        self.assertIn("ranges mma of type 2: 5 and 4", out)

    def test_a_range_too_many(self):
        self.assert_change_is_found(["range"], lambda: self.launch["ranges"].append(copy.deepcopy(self.range_named("life"))))

    def test_a_missing_marker(self):
        self.assert_change_is_found(["marker"], self.launch["markers"].pop)

    def test_another_name(self):
        def change():
            self.trace["stringTable"][self.trace["stringTable"].index("life")] = "wife"
        self.assert_change_is_found(["range"], change)

    def test_another_payload(self):
        for value, kind in (("payloadVal", 1), ("payloadType", 6)):
            for row in (self.launch["markers"][0], self.range_named("outer")["internalEvents"][0]):
                kept = row[value]
                row[value] = kind if row[value] != kind else kind + 1
                self.assert_differs(["payload"], trace_of("ranges"), self.trace)
                row[value] = kept

    def test_no_payload(self):
        event = self.range_named("tile")["internalEvents"][1]

        def change():
            del event["payloadType"], event["payloadVal"]
        self.assert_change_is_found(["payload"], change)

    def test_64_bits_of_payload(self):
        types = trace_of("types")
        row = next(row for row in types["launches"][0]["markers"] if row.get("payloadType") == 14)
        row["payloadVal"] += 1
        self.assert_differs(["payload"], trace_of("types"), types)

    def test_a_longer_range(self):
        row = self.range_named("produce")
        longer(row, 100)
        out = self.assert_differs(["duration", "gap"], trace_of("ranges"), self.trace)
        self.assertIn("produce", out)
        longer(row, -100 + 60)
        self.assert_same(trace_of("ranges"), self.trace)
        self.assert_differs(["duration", "gap"], trace_of("ranges"), self.trace, "--ns", "59")
        self.assert_same(trace_of("ranges"), self.trace, "--ns", "60")

    def test_events_in_a_range_may_cost_something(self):
        """`life` of a warp without a role has two events inside."""
        warps = [set(row["warpLocIdxs"]) for row in self.launch["ranges"]]
        index = min((warps.count({place}), place) for place in range(16))[1]
        for row in self.launch["ranges"]:
            if row["warpLocIdxs"][0] == index and row["rangeNameIdx"] == self.trace["stringTable"].index("life"):
                longer(row, 60)
                row["startTs"] -= 60
                row["internalEvents"][0]["timestamp"] -= 60
        self.assert_differs(["duration"], trace_of("ranges"), self.trace, "--event-ns", "1")
        self.assert_same(trace_of("ranges"), self.trace, "--event-ns", "28")

    def test_facts_of_ranges(self):
        def edit(key, value, kinds):
            row = self.range_named("span")
            kept = row[key]
            row[key] = value
            self.assert_differs(kinds, trace_of("ranges"), self.trace)
            row[key] = kept
        edit("rangeId", 1, ["range id"])
        edit("rangeColor", 255, ["colour"])
        edit("rangeScope", 1, ["scope"])
        edit("rangeType", 2, ["range"])
        edit("warpLocIdxs", [self.range_named("span")["warpLocIdxs"][0], 0], ["place of its end"])
        self.range_named("span")["internalEvents"][0]["eventId"] = 30
        self.assert_differs(["event ids"], trace_of("ranges"), self.trace)

    def test_a_colour_of_a_marker(self):
        self.launch["markers"][0]["color"] = 1
        self.assert_differs(["colour"], trace_of("ranges"), self.trace)

    def test_a_range_that_was_never_closed(self):
        self.assert_change_is_found(["event ids"], lambda: self.range_named("life")["internalEvents"].pop())

    def test_another_warp(self):
        self.trace["locationTable"][3]["warpId"] = 9
        out = self.assert_differs(["warp"], trace_of("ranges"), self.trace)
        self.assertIn("warp 9 is not in theirs", out)
        self.assertIn("warp 3 is not in ours", out)

    def test_a_missing_life(self):
        self.assert_change_is_found(["life"], self.launch["warpLifetimes"].pop)

    def test_another_kernel(self):
        def change():
            self.launch["kernelName"] = "other"
        out = self.assert_change_is_found(["launch"], change)
        self.assertIn("other: 0 launches and 1", out)
        self.assertIn("no launch is in both", out)

    def test_a_missing_launch(self):
        theirs = copy.deepcopy(self.trace)
        theirs["launches"].append(copy.deepcopy(self.launch))
        out = self.assert_differs(["launch"], theirs, self.trace)
        self.assertIn("2 launches and 1", out)

    def test_another_shape(self):
        for key, value in (("gridDimX", 2), ("blockDimY", 2), ("singleClusterActive", 1)):
            changed = copy.deepcopy(self.trace)
            changed["launches"][0][key] = value
            self.assert_differs(["shape"], self.trace, changed)

    def test_another_cluster(self):
        theirs, ours = trace_of("one-cluster"), trace_of("one-cluster")
        ours["launches"][0]["enabledCluster"] = {"x": 0, "y": 0, "z": 0}
        self.assert_differs(["shape"], theirs, ours)

    def test_all_of_the_grid_instead_of_one_cluster(self):
        self.assert_differs(["shape", "warp"], trace_of("one-cluster"), self.trace)

    def test_replays_of_graphs(self):
        graph = copy.deepcopy(self.trace)
        graph["graphLaunches"] = {"graph_exec_1:0": graph["launches"], "graph_exec_1:1": copy.deepcopy(graph["launches"])}
        graph["launches"] = []
        self.assertIn("| traces | 2 | 32 |", self.assert_same(graph, graph))
        self.assert_differs(["launch"], self.trace, graph)
        other = copy.deepcopy(graph)
        other["graphLaunches"]["graph_exec_1:1"][0]["ranges"].pop()
        self.assertIn("graph_exec_1:1", self.assert_differs(["range"], graph, other))

    def test_nothing_is_not_the_same(self):
        self.trace["launches"] = []
        self.assert_differs(["launch"], self.trace, self.trace)

    def test_another_gridid_is_said(self):
        self.launch["gridId"] = 7
        self.assertIn("note: 1 launches have another gridId", self.assert_same(trace_of("ranges"), self.trace))

    # --- what is compared with what

    def test_medians_over_launches(self):
        for _ in range(2):
            self.trace["launches"].append(copy.deepcopy(self.launch))
        theirs = copy.deepcopy(self.trace)

        def hold_up(launch):
            launch = self.trace["launches"][launch]
            held_up(launch, self.range_named("load", launch), 500)
        hold_up(1)  # once
        self.assert_differs(["duration", "gap"], theirs, self.trace)
        self.assert_same(theirs, self.trace, "--durations", "launches")
        hold_up(2)  # mostly
        self.assert_differs(["duration", "gap"], theirs, self.trace, "--durations", "launches")
        self.assert_same(theirs, self.trace, "--durations", "names")

    def test_medians_over_names(self):
        theirs = copy.deepcopy(self.trace)
        index = self.trace["stringTable"].index("mma")
        for row in self.launch["ranges"]:
            if row["rangeNameIdx"] == index:
                longer(row, 200)
        self.assert_differs(["duration", "gap"], theirs, self.trace, "--durations", "names")

    def test_counts_are_exact_over_names(self):
        theirs = copy.deepcopy(self.trace)
        self.launch["ranges"].remove(self.range_named("mma"))
        self.assert_differs(["range"], theirs, self.trace, "--durations", "names", "--ns", "1000")

    # --- what is no trace

    def test_no_traces(self):
        def cut(change):
            broken = copy.deepcopy(self.trace)
            change(broken)
            return broken
        broken = [[], {}, cut(lambda trace: trace.pop("locationTable")), cut(lambda trace: trace["stringTable"].clear()),
                  cut(lambda trace: trace["launches"][0]["ranges"][0].pop("rangeId")),
                  cut(lambda trace: trace["launches"][0]["ranges"][0].update(startTs=5))]
        for trace in broken:
            for order in ((trace, self.trace), (self.trace, trace)):
                code, out = self.compare(*order)
                self.assertEqual((code, len(out.splitlines())), (2, 1), out)
        self.assertEqual(self.run_main("/nowhere", "/nowhere")[0], 2)


if __name__ == "__main__":
    unittest.main()
