"""What is selected is recorded, whole; the rest leaves nothing and runs as ever. On the software device, or on a GPU
with IKET_TEST_DEVICE=gpu."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

IKET = os.environ["IKET"]
EXAMPLES = os.environ["IKET_EXAMPLES"]
APP = os.environ["IKET_SIM_APP"]
GRAPHS = os.environ["IKET_SIM_GRAPHS"]
IMAGES = os.environ["IKET_SIM_APP_IMAGES"]
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")
SAXPY = os.path.join(EXAMPLES, "saxpy_driver_marked")
LAUNCHES, CTAS, WARPS_PER_CTA = 5, 79, 8


class Selection(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_iket(self, *arguments):
        return subprocess.run([IKET, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              check=False, text=True)

    def profile(self, *options, program=(SAXPY, "--n", str(CTAS * 256), "--warmup", "1", "--iterations", "4"),
                says=r", ok\n$"):
        """What it says, and the report of its capture."""
        done = self.run_iket("profile", "--device", DEVICE, "--export", "none", "-o", self.path("out"), *options,
                             "--", *program)
        self.assertRegex(done.stdout, says, done.stderr)
        captures = glob.glob(self.path("out/*.iketcap"))
        if not captures:
            return done, None
        (capture,) = captures
        report = self.run_iket("report", "--json", capture)
        return done, json.loads(report.stdout) if report.returncode == 0 else None

    def check(self, report, launches, ctas):
        trust = report["trust"]
        self.assertEqual((trust["launches"]["all"], trust["launches"]["complete"]), (launches, launches))
        self.assertEqual(trust["warps"], launches * ctas * WARPS_PER_CTA)
        self.assertEqual(trust["counters"]["records_lost"], 0)

    def test_by_ctas(self):
        for options, ctas in {
            (): CTAS,
            ("--cluster", "7"): 1,
            ("--cta-sample", "3"): 27,
            ("--cta-sample", "8"): 10,
            ("--cta-sample", "2", "--cluster", "4,0,0"): 1,
            ("--sm", "0-131"): CTAS,
        }.items():
            with self.subTest(options):
                _, report = self.profile(*options)
                self.check(report, LAUNCHES, ctas)

    def test_by_sm(self):
        _, report = self.profile("--sm", "0-9,20")
        warps = report["trust"]["warps"]
        self.assertTrue(0 < warps < LAUNCHES * CTAS * WARPS_PER_CTA)
        self.check(report, LAUNCHES, warps / LAUNCHES / WARPS_PER_CTA)
        capture = self.path("by_sm.trace.json")
        (source,) = glob.glob(self.path("out/*.iketcap"))
        self.assertEqual(self.run_iket("export", source, "-o", capture, "--format", "trace.json").returncode, 0)

    def test_by_launches(self):
        for window, launches in {"1:3": 2, "0:1": 1, "4": 1, "2:": 3, ":4": 4}.items():
            with self.subTest(window):
                done, report = self.profile("--launch", window)
                self.check(report, launches, CTAS)
                self.assertRegex(done.stderr, rf"the host made {LAUNCHES - launches} more that were left out")

    def test_by_kernel(self):
        _, report = self.profile("--kernel", "^S[a-z]*y$")
        self.check(report, LAUNCHES, CTAS)
        done, report = self.profile("--kernel", "Gemm")
        self.assertIsNone(report)
        self.assertEqual(done.returncode, 4)
        self.assertIn("iket: nothing was recorded: --kernel 'Gemm' is found in no name of a kernel with marks; "
                      "there are Saxpy\n", done.stderr)
        self.assertRegex(done.stderr, r"kernels +0 traced, 1 left out, 0 refused")

    def test_warps_of_kernels_without_marks(self):
        plain = (os.path.join(EXAMPLES, "saxpy_driver"), *("--n", str(CTAS * 256), "--warmup", "1", "--iterations", "4"))
        done, report = self.profile("--warp-trace", "Gemm", program=plain)
        self.assertIsNone(report)
        self.assertIn("; --warp-trace 'Gemm' is found in no name of a kernel\n", done.stderr)
        _, report = self.profile("--warp-trace", "axpy", program=plain)
        self.check(report, LAUNCHES, CTAS)
        self.assertEqual(report["trust"]["events"], 0)
        _, report = self.profile("--warp-trace", "axpy", "--cta-sample", "4", "--launch", "1:", program=plain)
        self.check(report, LAUNCHES - 1, 20)

    def test_by_event(self):
        """What is recorded of some names is what is recorded of all, less the others."""
        def shown(report):
            return ({(row["name"], row["n"]) for row in report["ranges"]},
                    {(row["name"], row["n"]) for row in report["marks"]})
        _, everything = self.profile()
        ranges, marks = shown(everything)
        names = {name for name, _ in ranges | marks}
        self.assertEqual(names, {"first element", "step", "load", "last"})
        for wanted in ({"step"}, {"load"}, {"last", "first element"}, {"step", "load"}, names):
            with self.subTest(wanted):
                done, report = self.profile("--range-filter", "^(" + "|".join(sorted(wanted)) + ")$")
                self.check(report, LAUNCHES, CTAS)
                self.assertEqual(shown(report), ({row for row in ranges if row[0] in wanted},
                                                 {row for row in marks if row[0] in wanted}))
                self.assertEqual(report["trust"]["counters"]["events_left_out"], 0, "nothing of them was recorded")
                if wanted != names:
                    self.assertRegex(done.stderr, rf"only +{len(wanted)} of 4 names; \d+ of \d+ sites stay as they were")
                else:
                    self.assertNotIn("names; ", done.stderr)

    def test_pops_are_their_pushes(self):
        """Where some pushes are wanted, all of them and their pops are recorded; the others are not shown."""
        for wanted, ranges, left_out in (("inner", {("inner", 16)}, 32), ("^(inner|whole)$", {("inner", 16), ("whole", 4)},
                                                                          32),
                                         ("outer", {("outer", 16)}, 32), ("whole", {("whole", 4)}, 0),
                                         ("between", set(), 0)):
            with self.subTest(wanted):
                _, report = self.profile("--range-filter", wanted,
                                         program=(APP, os.path.join(IMAGES, "marked.cubin"), "Nested"), says="done")
                trust = report["trust"]
                self.assertEqual((trust["launches"]["all"], trust["launches"]["complete"], trust["warps"]), (1, 1, 4))
                self.assertEqual({(row["name"], row["n"]) for row in report["ranges"]}, ranges)
                self.assertEqual({(row["name"], row["n"]) for row in report["marks"]},
                                 {("between", 16)} if wanted == "between" else set())
                self.assertEqual(trust["counters"]["events_left_out"], left_out)
                (capture,) = glob.glob(self.path("out/*.iketcap"))
                checked = self.run_iket("check", capture)
                self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_a_name_that_no_event_has(self):
        done, report = self.profile("--range-filter", "^mma$")
        self.assertIsNone(report)
        self.assertEqual(done.returncode, 4)
        self.assertIn("iket: nothing was recorded: --range-filter '^mma$' is found in no name, category, group or lane of a mark or range; "
                      "there are first element, last, load, step\n", done.stderr)
        self.assertRegex(done.stderr, r"kernels +0 traced, 1 left out, 0 refused")
        (capture,) = glob.glob(self.path("out/*.iketcap"))
        info = self.run_iket("info", capture).stdout
        self.assertRegex(info, r"Saxpy +#\d+ +\d+ +\d+ +left out: --range-filter wants none of its events")
        self.assertRegex(info, r"first element +mark +i32 +0x[0-9a-f]+ +left out by --range-filter")
        # Of which warps are wanted all the same.
        done, report = self.profile("--range-filter", "^mma$", "--warp-trace", "axpy")
        self.check(report, LAUNCHES, CTAS)
        self.assertEqual(report["trust"]["events"], 0)
        self.assertEqual(done.stderr.count("--range-filter '^mma$' is found in no name"), 1)

    def test_a_name_that_no_event_of_the_kernel_has(self):
        done, report = self.profile("--range-filter", "whole", "--kernel", "Work",
                                    program=(APP, os.path.join(IMAGES, "marked.cubin"), "Work"), says="done")
        self.assertIsNone(report)
        self.assertIn("iket: nothing was recorded: --range-filter 'whole' is found in no name, category, group or lane of a mark or range of "
                      "Work\n", done.stderr)

    def test_a_file_says_which_events(self):
        with open(self.path("events.json"), "w", encoding="utf-8") as file:
            file.write('{"range-filter": "^(step|last)$"}')
        for options, names in (((), {"step", "last"}), (("--range-filter", "load"), {"load"})):
            _, report = self.profile("--config", self.path("events.json"), *options)
            self.check(report, LAUNCHES, CTAS)
            self.assertEqual({row["name"] for row in report["ranges"] + report["marks"]}, names)

    def test_what_selects_nothing_says_so(self):
        for options, why in {
            ("--launch", "9:"): "5 launches were made, all outside of what --launch selects",
            ("--paused",): "5 launches were made, all outside of what --paused selects",
            ("--cluster", "999"): "no CTA that was launched is among those that were selected",
        }.items():
            with self.subTest(options):
                done, report = self.profile(*options)
                self.assertIsNone(report)
                self.assertEqual(done.returncode, 4)
                self.assertIn(f"iket: nothing was recorded: {why}\n", done.stderr)

    def test_a_file_says_it(self):
        for text, ctas in {
            '{"cta-sample": 3, "kernel": "Saxpy"}': 27,
            '{"clusters": {"Sax": [7, 0, 0], "S": "all"}}': 1,
            '{"Saxpy": [78, 0, 0]}': 1,
            '{"range-filter": "step", "cta-sample": 3}': 27,
            '{"Saxpy": null}': CTAS,
        }.items():
            with self.subTest(text):
                with open(self.path("wanted.json"), "w", encoding="utf-8") as file:
                    file.write(text)
                _, report = self.profile("--config", self.path("wanted.json"))
                self.check(report, LAUNCHES, ctas)
        _, report = self.profile("--config", self.path("wanted.json"), "--cluster", "5", "--cta-sample", "5")
        self.check(report, LAUNCHES, 16)

    def test_wrong_use(self):
        with open(self.path("wrong.json"), "w", encoding="utf-8") as file:
            file.write("[]")
        for options, code, why in (
            (("--kernel", "a("), 2, "iket: 'a(' is no regular expression"),
            (("--range-filter", "a("), 2, "iket: 'a(' is no regular expression"),
            (("--launch", "3:1"), 2, "--launch: '3:1' is not of the form A:B with A below B"),
            (("--sm", "1-"), 2, "--sm: '1-' is no list of SMs such as 0-3,7"),
            (("--config", self.path("none.json")), 3, "No such file or directory"),
            (("--config", self.path("wrong.json")), 3, "wrong.json: not a JSON object"),
        ):
            with self.subTest(options):
                done = self.run_iket("profile", "--device", DEVICE, *options, "--", SAXPY)
                self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
                self.assertIn(why, done.stderr)

    def test_of_graphs(self):
        """Each launch of a graph counts as one; its nodes record if it is inside."""
        program = (GRAPHS, os.path.join(IMAGES, "marked.cubin"))
        _, everything = self.profile(program=program)
        done, report = self.profile("--launch", "5:12", program=program)
        trust = report["trust"]["launches"]
        # Launch 0 is of a kernel, those from 1 on are of a graph with two nodes.
        self.assertEqual((trust["all"], trust["complete"], trust["by_graphs"]), (14, 14, 14), done.stderr)
        _, report = self.profile("--cta-sample", "2", program=program)
        self.assertEqual(report["trust"]["launches"], everything["trust"]["launches"])
        self.assertLess(report["trust"]["warps"], everything["trust"]["warps"])


if __name__ == "__main__":
    unittest.main()
