"""`run-iket profile` on the software device: what it records, its files, and the way to it through Python."""

import glob
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

IKET = os.environ["IKET"]
RUN_IKET = os.environ["RUN_IKET"]
APP = os.environ["IKET_SIM_APP"]
IMAGE = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "marked.cubin")
PLAIN = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "plain.cubin")
PYTHON_PACKAGE = os.environ["IKET_PYTHON_PACKAGE"]
# Of each kernel: 2 CTAs of 2 warps.
WARPS = 4
# A name behind which the process's number and an ending follow.
PREFIX = "iket_pid_0x"


class RunIket(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        self.environment["IKET_DEVICE"] = "sim"

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_(self, command, **variables):
        return subprocess.run(command, env={**self.environment, **variables}, cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              check=False, text=True)

    def profile(self, *options, program=(APP, IMAGE, "Work"), common=()):
        done = self.run_([RUN_IKET, "-o", "out", "--clobber", *common, "profile", *options, "--", *program])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def files(self, folder="out"):
        """Endings of the files, of which there is one process."""
        names = [name for name in sorted(os.listdir(self.path(folder))) if name != ".iket_output"]
        self.assertEqual(len({name.split(".")[0] for name in names if name.startswith(PREFIX)}), 1, names)
        return [name[name.index("."):] if name.startswith(PREFIX) else name for name in names]

    def trace(self, *options, **more):
        """The launches of the JSON trace."""
        self.profile("--postprocess", "json", *options, **more)
        (path,) = glob.glob(self.path("out/*.trace.json"))
        with open(path, encoding="utf-8") as file:
            return json.load(file)["launches"]

    def shape(self, launches):
        return [(launch["kernelName"], len(launch["ranges"]), len(launch["markers"]), len(launch["warpLifetimes"]))
                for launch in launches]

    def test_the_buffers_size_bounds_the_rings(self):
        def memory(*common):
            said = self.profile("--postprocess", "none", common=("--log-level", "info", *common)).stderr
            found = re.search(r"device memory +([0-9.]+) (MB|GB)", said)
            self.assertTrue(found, said)
            return float(found[1]) * (1000 if found[2] == "GB" else 1)

        self.assertGreater(memory(), 2000)
        self.assertLess(memory("--context-buffer-size", "512M"), 540)
        self.assertLess(memory("--context-buffer-size", "64m"), 68)

    def test_files_of_each_choice(self):
        for choice, endings in (
            ("none", []),
            ("perfetto", [".pftrace"]),
            ("json", [".trace.json"]),
            ("html", [".html", ".pftrace.gz"]),
            ("all", [".html", ".pftrace", ".pftrace.gz", ".trace.json"]),
        ):
            with self.subTest(choice):
                done = self.profile("--postprocess", choice)
                self.assertEqual(self.files(), sorted([".iketcap", *endings]))
                self.assertEqual(done.stderr, "")
                said = {".pftrace": "perfetto trace", ".pftrace.gz": "compressed trace", ".trace.json": "json trace",
                        ".html": "perfetto HTML viewer"}
                for ending, what in said.items():
                    pattern = rf"\n\[run-iket\] Dumped {what} to {self.folder}/out/{PREFIX}[0-9a-f]+{ending}\n"
                    (self.assertRegex if ending in endings else self.assertNotRegex)(done.stdout, pattern)
        self.profile("--enable-stats", "--keep")
        self.assertEqual(self.files(), [".iketcap", ".pftrace", "run-iket.stats.json"])

    def test_events_of_a_launch(self):
        self.assertEqual(self.shape(self.trace()), [("Work", 0, WARPS, WARPS)])

    def test_rings_are_emptied_while_a_kernel_runs(self):
        """60,000 marks of one warp, of which a ring holds 2,048; what is lost of them is said at any level."""
        done = self.profile("--postprocess", "json", program=(APP, IMAGE, "Paced"))
        (path,) = glob.glob(self.path("out/*.trace.json"))
        with open(path, encoding="utf-8") as file:
            (launch,) = json.load(file)["launches"]
        self.assertGreater(len(launch["markers"]), 4 * 2048)
        lost = re.search(r"([\d,]+) records overwritten", done.stderr)
        self.assertEqual(lost is None, len(launch["markers"]) == 60_000, done.stderr)

    def test_levels_of_what_is_said(self):
        for level, says in (("error", ""), ("warn", ""), ("info", r"launches +1: 1 complete")):
            done = self.profile(common=["--log-level", level])
            (self.assertRegex if says else self.assertEqual)(done.stderr, says)

    def test_lifetimes_of_marked_and_unmarked_kernels(self):
        for image in (IMAGE, PLAIN):
            launches = self.trace("--warp-trace", program=(APP, image, "Work"))
            self.assertEqual(self.shape(launches), [("Work", 0, 0, WARPS)])

    def test_one_cluster(self):
        (launch,) = self.trace("--enabled-cluster", "1,0,0")
        self.assertEqual(len(launch["markers"]), WARPS // 2)

    def test_a_cluster_for_each_kernel(self):
        for rules, options, warps in (
            ({"Wo": [0, 0, 0]}, [], WARPS // 2),
            ({"Work": "all", "Wo": [0, 0, 0]}, [], WARPS),
            ({"ork": None}, ["--enabled-cluster", "1,0,0"], WARPS),
            # Not of ours, for which `kernel` and `sm` are words.
            ({"kernel": [0, 0, 0], "sm": "all"}, ["--enabled-cluster", "1,0,0"], WARPS // 2),
        ):
            with self.subTest(rules), open(self.path("rules.json"), "w", encoding="utf-8") as file:
                json.dump(rules, file)
                file.flush()
                (launch,) = self.trace("--enabled-cluster-config", "rules.json", *options)
                self.assertEqual(len(launch["markers"]), warps)

    def instruments(self, kernel, *names):
        points = [{"name": name, "offset": 16, "idx": 1} for name in names]
        config = {"meta": {"version": 1}, "modules": [
            {"hash": "0", "size": 1, "functions": {kernel: [{"maxTsCntPerWarp": 1, "name": kernel, "points": points}]}}]}
        with open(self.path("instrument.config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        return "--use-config", "instrument.config.json"

    def test_instruments_name_kernels_and_events(self):
        nested = {"program": (APP, IMAGE, "Nested")}
        whole = self.trace(**nested)
        self.assertNotEqual(whole[0]["markers"], [])
        self.assertEqual(self.shape(self.trace(*self.instruments("Nested", "whole", "outer", "inner", "between"), **nested)),
                         self.shape(whole))
        (launch,) = self.trace(*self.instruments("Nested", "between"), **nested)
        self.assertEqual((launch["ranges"], len(launch["markers"])), ([], len(whole[0]["markers"])))
        (launch,) = self.trace(*self.instruments("Nested", "betwee", "whole"), **nested)  # no name is a part of another
        self.assertEqual(launch["markers"], [])
        # Points without names: which events they are is not known.
        (launch,) = self.trace(*self.instruments("Nested", None), **nested)
        self.assertEqual(len(launch["markers"]), len(whole[0]["markers"]))

    def test_instruments_of_another_kernel(self):
        done = self.run_([RUN_IKET, "profile", *self.instruments("Wor"), "--", APP, IMAGE, "Work"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("run-iket: nothing was recorded: --use-config '^(Wor)$' is found in no name", done.stderr)

    def test_postprocess_of_a_run(self):
        self.profile("--postprocess", "none")
        done = self.run_([RUN_IKET, "postprocess", "out"])
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(self.files(), [".html", ".iketcap", ".pftrace", ".pftrace.gz", ".trace.json"])

    def test_a_program_without_marks(self):
        done = self.run_([RUN_IKET, "profile", "--", APP, PLAIN, "Work"])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "^run-iket: nothing was recorded: .* built with IKET_ENABLE")

    def test_a_kernel_that_faults_leaves_its_events(self):
        done = self.run_([RUN_IKET, "profile", "--postprocess", "json", "--", APP, IMAGE, "Trap"])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.files("iket_output"), [".iketcap", ".trace.json"])
        self.assertRegex(done.stderr, r"not ended +")  # said although nobody asked

    def test_an_option_of_iket_outdoes_the_environment(self):
        done = self.run_([IKET, "profile", "--device", "gpu", "--", APP, IMAGE, "Work"])
        self.assertNotIn("software device", done.stderr)
        done = self.run_([IKET, "profile", "--", APP, IMAGE, "Work"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("software device", done.stderr)

    def test_ctrl_c_leaves_whole_files(self):
        running = subprocess.Popen([RUN_IKET, "-o", "out", "profile", "--postprocess", "all", "--", APP, IMAGE, "Endless"],
                                   env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True, text=True)
        for line in running.stdout:
            if line == "running\n":
                break
        os.killpg(running.pid, signal.SIGINT)
        said, _ = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, said)
        self.assertEqual(self.files(), [".html", ".iketcap", ".pftrace", ".pftrace.gz", ".trace.json"])
        for path in glob.glob(self.path("out/*")):
            if not path.endswith(".html"):
                subprocess.run([IKET, "check", path], stdout=subprocess.DEVNULL, check=True)
        with open(glob.glob(self.path("out/*.trace.json"))[0], encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["launches"][0]["markers"]), WARPS)

    def test_the_command_that_tilelang_builds(self):
        """profile_command of its tools.cuda.iket, through the shim; then what its trace_files finds."""
        parts = ["python", "-m", "iket.cli.main", "--output-dir", self.path("out"), "--clobber", "profile",
                 "--postprocess", "all", "--"]
        command = " ".join(shlex.quote(part) for part in [*parts, APP, IMAGE, "Work"])
        os.mkdir(self.path("bin"))
        os.symlink(sys.executable, self.path("bin/python"))
        done = self.run_(["sh", "-c", command], IKETRACE_RUN_IKET=RUN_IKET,
                         PYTHONPATH=os.path.join(PYTHON_PACKAGE, "shim"),
                         PATH=self.path("bin") + ":" + os.environ["PATH"])
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(self.files(), [".html", ".iketcap", ".pftrace", ".pftrace.gz", ".trace.json"])
        self.assertIn("\ndone\n", done.stdout)

    def test_what_is_profiled_does_not_inherit_the_ways_of_python(self):
        """Python ignores SIGPIPE, and would hand that on."""
        show = ["sh", "-c", "grep SigIgn /proc/self/status"]
        direct = self.run_([RUN_IKET, "-o", "a", "profile", "--", *show])
        through = self.run_([sys.executable, "-m", "iketrace.run_iket", "-o", "b", "profile", "--", *show],
                            IKETRACE_RUN_IKET=RUN_IKET, PYTHONPATH=PYTHON_PACKAGE)
        ignored = [[line for line in done.stdout.splitlines() if line.startswith("SigIgn")] for done in (direct, through)]
        self.assertEqual(len(ignored[0]), 1)
        self.assertEqual(ignored[0], ignored[1])


if __name__ == "__main__":
    unittest.main()
