"""attach.py on the software device, in small: it counts right, and reads right what the tools say.

run-iket is played by this file (`attach_test.py run-iket ...`): it runs the program twice and writes a trace of
a known number of events, as NVIDIA's does; with --warp-trace it dies. No time is looked at.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.environ.get("IKET_TREE", "")
MARK = "<!-- What follows is attach.json, by attach.py --render. -->"


def run_iket(arguments):
    out, at = arguments[1], arguments.index("--")
    program = arguments[at + 1:]
    if "--warp-trace" in arguments:
        print("terminate called after throwing an instance of 'std::runtime_error'", file=sys.stderr, flush=True)
        os.abort()
    for _ in range(2):
        subprocess.run(program, check=False)
    os.makedirs(out)
    if "json" in arguments[:at]:
        launch = {"markers": [{}] * 3, "ranges": [{}] * 5}
        with open(os.path.join(out, "iket_pid_0x1.trace.json"), "w", encoding="utf-8") as file:
            json.dump({"launches": [launch, launch]}, file)


def attach(*arguments, environment=None):
    return subprocess.run([sys.executable, os.path.join(HERE, "attach.py"), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=250, check=False, env=environment)


class Attach(unittest.TestCase):
    def measure(self, *arguments):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.done = attach("--tree", TREE, "--out", folder.name, "--device", "sim", *arguments)
        with open(os.path.join(folder.name, "attach.json"), encoding="utf-8") as file:
            data = json.load(file)
        with open(os.path.join(folder.name, "attach.md"), encoding="utf-8") as file:
            table = file.read()
        rendered = attach("--render", os.path.join(folder.name, "attach.json"))
        self.assertEqual(rendered.stdout, table)
        page = os.path.join(folder.name, "page.md")
        with open(page, "w", encoding="utf-8") as file:
            file.write(f"# Page\n\n{MARK}\n\nof an earlier run\n")
        attach("--render", os.path.join(folder.name, "attach.json"), "--into", page)
        with open(page, encoding="utf-8") as file:
            self.assertEqual(file.read(), f"# Page\n\n{MARK}\n\n{table}")
        self.assertEqual(self.done.returncode, 0, self.done.stderr + str(data["wrong"]))
        self.assertEqual(data["not_measured"], {})
        return data, table

    def test_all_rows_without_run_iket(self):
        data, table = self.measure()
        rows = data["rows"]
        self.assertEqual(list(rows), ["launch", "start", "cases", "stream", "stopped", "drain"])
        self.assertIn("no figure here is a measurement", table)
        self.assertEqual(set(rows["launch"]["ns"]), {"plain", "iket"})
        self.assertEqual(len(rows["launch"]["ns"]["iket"]), 4)
        self.assertEqual(rows["start"]["iket"]["runs"], 2)
        for row in [*rows["stream"]["rows"], rows["stopped"]]:
            self.assertTrue(row["exact"])
            self.assertEqual(row["kept"] + row["lost"], row["written"])
        self.assertEqual(rows["stream"]["rows"][1]["events"], 4 * 4096)
        self.assertGreater(rows["stopped"]["lost"], 0)
        ours = rows["cases"]["ours"]
        self.assertEqual([one["events_kept"] for one in ours["counts"]], [4 * 41, 4 * 401])
        self.assertEqual((ours["fault"]["code"], ours["fault"]["events_kept"]), (3, 3 * 4 * 11 + 6))
        self.assertEqual([one["warps_kept"] for one in ours["ends"]], [3 * 66 * 8 + 1] * 2)
        self.assertEqual(ours["many"]["events_kept"], 3 * 66 * 8 + 1)
        self.assertEqual(rows["drain"]["load"]["stream"]["lost"], 0)
        self.assertEqual(rows["cases"]["theirs"], {})

    def test_a_row_is_measured_again(self):
        with tempfile.TemporaryDirectory() as folder:
            for more in (["--only", "start,drain"], ["--only", "start", "--add"]):
                done = attach("--tree", TREE, "--out", folder, "--device", "sim", *more)
                self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "attach.json"), encoding="utf-8") as file:
                self.assertEqual(set(json.load(file)["rows"]), {"start", "drain"})

    def test_beside_a_run_iket(self):
        tool = f"{sys.executable} {os.path.abspath(__file__)} run-iket"
        data, table = self.measure("--only", "launch,start,cases", "--run-iket", tool)
        self.assertEqual(data["rows"]["launch"]["processes"], {"plain": 2, "iket": 2, "plain_nvidia": 2, "run_iket": 1})
        self.assertEqual(data["rows"]["start"]["run_iket"]["runs"], 1)
        theirs = data["rows"]["cases"]["theirs"]
        # The second run goes around more often, and the trace is what the tool wrote.
        self.assertEqual(theirs["counts"]["finished"], [20, 200])
        self.assertEqual([theirs["counts"][what] for what in ("launches", "marks", "ranges")], [2, 6, 10])
        self.assertEqual(theirs["ends"][0]["code"], 128 + 6)
        self.assertEqual(len(theirs["ends"]), 1)
        self.assertEqual(len(theirs["many"]["finished"]), 2)
        self.assertIn("terminate called", table)

    def test_time_that_is_over_leaves_what_was_measured(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        done = attach("--tree", TREE, "--out", folder.name, "--device", "sim", "--seconds", "3.2")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        with open(os.path.join(folder.name, "attach.json"), encoding="utf-8") as file:
            data = json.load(file)
        self.assertEqual(len(data["rows"]) + len(data["not_measured"]), 6)

    def test_without_a_gpu_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            # No device is visible, on any machine.
            done = attach("--tree", TREE, "--out", folder, environment={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Aattach: no GPU that can be used: .*\n\Z")

    def test_a_run_iket_that_is_not_there_is_wrong_use(self):
        with tempfile.TemporaryDirectory() as folder:
            done = attach("--tree", TREE, "--out", folder, "--device", "sim", "--run-iket", "/nowhere/run-iket")
        self.assertEqual((done.returncode, done.stderr), (2, "attach: --run-iket: no program /nowhere/run-iket\n"))

    def test_an_unknown_row_is_wrong_use(self):
        self.assertEqual(attach("--out", "x", "--only", "lunch").returncode, 2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run-iket"]:
        run_iket(sys.argv[2:])
    else:
        unittest.main(verbosity=2)
