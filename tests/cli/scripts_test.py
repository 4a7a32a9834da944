"""Scripts for run-iket's .trace.json say of our export what they say of its own file."""

import os
import shutil
import subprocess
import sys

import harness

DATA = os.path.join(harness.SOURCE_DIR, "tests", "data", "run-iket")
SCRIPTS = os.path.join(harness.SOURCE_DIR, "examples", "scripts")
FOLDERS = ("cpp", "ranges", "tilelang-payload", "types", "warp-trace")


class ScriptsTest(harness.CliTest):
    maxDiff = 4000

    def setUp(self):
        super().setUp()
        self.traces = {}
        for folder in FOLDERS:
            run = os.path.join(DATA, folder)
            theirs = self.path("theirs-" + folder)
            ours = self.path("ours-" + folder)
            os.mkdir(theirs)
            os.mkdir(ours)
            shutil.copy(os.path.join(run, "trace.json"), os.path.join(theirs, "a.trace.json"))
            out = os.path.join(ours, "a.trace.json")
            self.assertEqual(self.iket("export", os.path.join(run, "iket.data.json"), "-o", out).code, 0)
            self.traces[folder] = (theirs, ours)

    def script(self, name, *arguments):
        done = subprocess.run([sys.executable, os.path.join(SCRIPTS, name), *arguments], cwd=self.folder,
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def same(self, name, folder, *arguments):
        """What it says of both: the first of them."""
        theirs, ours = (self.script(name, os.path.join(at, "a.trace.json"), *arguments)
                        for at in self.traces[folder])
        self.assertEqual(ours, theirs, (name, folder, arguments))
        return theirs

    def test_range_stats(self):
        for folder in FOLDERS:
            said = self.same("range_stats.py", folder)
            self.assertEqual(len(said.splitlines()) - 1,
                             {"cpp": 1, "ranges": 7, "tilelang-payload": 2}.get(folder, 0))
        said = self.same("range_stats.py", "ranges", "--kernel", "k_ranges")
        self.assertRegex(said, r"\ntile +20 +1984 +99\.2 +96 +128 +128\n")
        self.assertNotIn("tile", self.same("range_stats.py", "ranges", "--kernel", "another"))

    def test_overlap(self):
        for by, rows in (("warp", 4), ("cta", 4), ("sm", 4)):
            said = self.same("overlap.py", "ranges", "tile", "mma", "--by", by)
            self.assertEqual(len(said.splitlines()), rows + 2)
            self.assertRegex(said, r"\nall +1984 +\d+ +\d+ +\d+\.\d%\n")
        # Of one warp: nothing of these two is at one time; of a CTA much is.
        self.assertRegex(self.same("overlap.py", "ranges", "produce", "tile", "--by", "warp"), r"\nall .* 0 +0.0%\n")
        self.assertNotRegex(self.same("overlap.py", "ranges", "produce", "tile"), r"\nall .* 0 +0.0%\n")
        self.same("overlap.py", "tilelang-payload", "block", "body", "--by", "sm")
        self.same("overlap.py", "cpp", "r", "nothing")

    def test_timeline(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                said = self.same("timeline.py", folder, "x.svg", "--svg")
                pictures = []
                for at in self.traces[folder]:
                    self.script("timeline.py", os.path.join(at, "a.trace.json"), "x.svg", "--svg")
                    pictures.append(self.read("x.svg"))
                self.assertEqual(pictures[0], pictures[1])
                self.assertGreater(pictures[0].count(b"<text"), 5)
                if folder == "ranges":
                    self.assertIn("x.svg: 16 warps, 132 ranges, 12 markers", said)
                    self.assertEqual(pictures[0].count(b"<rect"), 132)
                    self.assertEqual(pictures[0].count(b"<path"), 12)
        said = self.same("timeline.py", "warp-trace", "x.svg", "--svg", "--launch", "1", "--cta", "2,0,0")
        self.assertIn("x.svg: 4 warps, 0 ranges, 0 markers", said)

    def test_a_picture_where_there_is_no_matplotlib(self):
        with open(self.path("matplotlib.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError\n")
        done = subprocess.run([sys.executable, os.path.join(SCRIPTS, "timeline.py"),
                               os.path.join(DATA, "ranges", "trace.json"), "y.svg"], cwd=self.folder, check=False,
                              env={**os.environ, "PYTHONPATH": self.folder}, capture_output=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(self.read("y.svg").startswith(b"<svg "))

    def test_marker_payloads(self):
        for folder, marker, expected in (("types", "lit_int", [4294967289] * 4), ("types", "i8", [248] * 4),
                                         ("types", "f32", [1048576000, 1107361792] * 2),
                                         ("ranges", "odd_lane", [97] * 4), ("ranges", "nothing", []),
                                         ("tilelang-payload", "enter", [0] * 4 + [1] * 4)):
            said = [self.script("marker_payloads.py", at, marker) for at in self.traces[folder]]
            self.assertEqual(said, [f"{expected}\n"] * 2)

    def test_captures_of_ours(self):
        self.iket("export", "--format", "trace.json", self.capture("complete"))
        said = self.script("range_stats.py", "complete.trace.json")
        report = self.iket("report", "--json", "complete.iketcap").json()
        counts = {line.split()[0]: int(line.split()[1]) for line in said.splitlines()[1:]}
        wanted = {row["name"]: row["n"] for row in report["ranges"]}
        self.assertEqual(counts, wanted)
        self.assertTrue(counts)


if __name__ == "__main__":
    harness.unittest.main()
