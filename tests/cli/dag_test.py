"""Graphs of dependencies, .iket_dag.json: read and written."""

import json
import os

import harness

DATA = os.path.join(harness.SOURCE_DIR, "tests", "data")
RUN = os.path.join(DATA, "run-iket", "ranges", "iket.data.json")
DECLARES = os.path.join(DATA, "h200", "values.iketcap")  # iket::dag("d").edge("tile", "copy", ..)

GRAPH = {"name": "g", "regions": ["load", "mma"],
         "edges": [{"source": "load", "target": "mma", "label": "x", "via": "smem"}]}


class DagTest(harness.CliTest):
    def dag(self, graph=None, name="g.iket_dag.json"):
        return self.write(name, json.dumps(graph or GRAPH).encode())

    def test_arrows(self):
        plain = self.iket("export", RUN, "-o", "plain.pftrace")
        self.assertEqual(plain.code, 0, plain.err)
        result = self.iket("export", "--dag", self.dag(), RUN, "-o", "with.pftrace")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn("sound", self.iket("check", "with.pftrace").out)
        self.assertNotIn(b"g: load -> mma, x, by smem", self.read("plain.pftrace"))
        self.assertIn(b"g: load -> mma, x, by smem", self.read("with.pftrace"))

    def test_several_files_join_what_the_code_declares(self):
        more = self.dag({"name": "d", "edges": [{"source": "tile", "target": "done"}]}, "more.json")
        result = self.iket("export", "--dag", self.dag(), "--dag", more, "--dag", more, DECLARES, "-o", "a.trace.json")
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.err, r"warning: --dag: nothing in \S+ is called .*load, mma: no arrows for it")
        edges = json.loads(self.read("a.trace.json"))["meta"]["iket"]["edges"]
        self.assertEqual([(edge["dag"], edge["source"], edge["target"]) for edge in edges],
                         [("d", "tile", "copy"), ("g", "load", "mma"), ("d", "tile", "done")])

    def test_written(self):
        result = self.iket("export", DECLARES, "-o", "d.iket_dag.json")
        self.assertEqual((result.code, result.err), (0, ""))
        graph = json.loads(self.read("d.iket_dag.json"))
        self.assertEqual(graph, {"name": "d", "regions": ["copy", "tile"], "edges": [
            {"source": "tile", "target": "copy", "label": "smem", "via": "mbarrier"}]})
        # What was written can be read, and says nothing new.
        again = self.iket("export", "--dag", "d.iket_dag.json", DECLARES, "-o", "again.iket_dag.json")
        self.assertEqual(again.code, 0, again.err)
        self.assertEqual(self.read("again.iket_dag.json"), self.read("d.iket_dag.json"))
        said = self.iket("export", DECLARES, "-o", "-", "--format", "iket_dag.json")
        self.assertEqual(json.loads(said.out), graph)

    def test_a_file_for_each_graph(self):
        capture = self.path("c.iketcap")
        with open(DECLARES, "rb") as file:
            self.write("c.iketcap", file.read())
        result = self.iket("export", "--dag", self.dag(), capture, "--format", "iket_dag.json")
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(json.loads(self.read("g.iket_dag.json"))["name"], "g")
        self.assertEqual(json.loads(self.read("d.iket_dag.json"))["name"], "d")
        result = self.iket("export", "--dag", self.dag(), capture, "-o", "one.iket_dag.json")
        self.assertEqual(result.code, 2)
        self.assertIn("-o names one file, and there are the graphs d, g", result.err)

    def test_nothing_declared(self):
        result = self.iket("export", RUN, "-o", "x.iket_dag.json")
        self.assert_one_line(result, 4)
        self.assertIn(f"{RUN}: no dependencies are declared in it; iket::dag declares them, and --dag", result.err)
        self.assertFalse(os.path.exists(self.path("x.iket_dag.json")))

    def test_what_is_no_graph(self):
        bad = self.write("bad.json", b"{}")
        result = self.iket("export", "--dag", bad, RUN, "-o", "x.pftrace")
        self.assert_one_line(result, 3)
        self.assertIn("bad.json: not a graph of dependencies: it has no \"name\"; it must be as dag.save()", result.err)
        self.assertFalse(os.path.exists(self.path("x.pftrace")))
        result = self.iket("export", "--dag", "none.json", RUN, "-o", "x.pftrace")
        self.assert_one_line(result, 3)
        self.assertIn("none.json: cannot open the graph of dependencies", result.err)


if __name__ == "__main__":
    harness.unittest.main()
