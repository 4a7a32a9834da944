"""iket report on sound captures."""

import glob
import os
import re
import unittest

import harness


class ReportTest(harness.CliTest):
    def test_trust_comes_first(self):
        result = self.iket("report", self.capture("complete"))
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(result.err, "")
        lines = result.out.splitlines()
        self.assertEqual(lines[0], "trust")
        self.assertEqual(lines[1], "  device     Paper GPU")
        self.assertEqual(
            lines[2], "  launches   2: 2 complete, 0 partial, 0 not matched with the host's log"
        )
        self.assertEqual(lines[3], "  warps      8, 0 without begin, 0 without end, 0 missing")
        self.assertRegex(lines[4], r"^  records    (\d+) written, \1 kept, 0 lost \(0 %\)$")
        self.assertIn("ranges and marks, over the 2 launches that are complete", lines)

    def test_statistics(self):
        result = self.iket("report", self.capture("complete"))
        rows = {line.split()[0]: line.split() for line in result.out.splitlines() if line}
        # 2 launches x 4 warps x 3 rounds.
        self.assertEqual(rows["load"][1], "24")
        self.assertEqual(rows["mma"][1], "24")
        self.assertEqual(rows["tile"][1], "24")
        self.assertEqual(rows["k"][1:], ["24", "mark"])
        self.assertRegex(result.out, r"(?m)^saxpy")

    def test_json_says_the_same(self):
        report = self.iket("report", "--json", self.capture("complete")).json()
        self.assertEqual(report["trust"]["launches"]["complete"], 2)
        self.assertEqual(report["trust"]["warps"], 8)
        self.assertEqual(report["statistics_over"], "complete")
        ranges = {row["name"]: row for row in report["ranges"]}
        self.assertEqual(set(ranges), {"load", "mma", "tile"})
        self.assertEqual({row["n"] for row in ranges.values()}, {24})
        # make_capture lets 200 ns pass in `load`, 400 in `mma`.
        self.assertAlmostEqual(ranges["load"]["ns"]["median"], 200, delta=3)
        self.assertAlmostEqual(ranges["mma"]["ns"]["max"], 400, delta=3)
        self.assertAlmostEqual(ranges["mma"]["ns"]["total"], 24 * 400, delta=24 * 3)
        self.assertEqual([(row["name"], row["n"]) for row in report["marks"]], [("k", 24)])

    def test_kernels_of_one_name_have_a_legend(self):
        """What report calls saxpy#1, its legend, its JSON and `info` name in full."""
        capture = self.capture("twins")
        names = {kernel["number"]: kernel for kernel in self.iket("info", "--json", capture).json()["kernels"]}
        self.assertEqual(len(names), 3)
        legend = self.iket("report", capture).out.split("\nkernels of one name\n")[1]
        rows = [line.split(None, 1) for line in legend.splitlines()]
        self.assertEqual(rows, [[f"saxpy#{number}", names[number]["demangled"]] for number in sorted(names)])
        self.assertIn("a::saxpy()", legend)
        text = self.iket("info", capture).out
        for number, kernel in names.items():
            self.assertRegex(text, rf"(?m)^  {re.escape(kernel['demangled'])} +#{number} ")
        report = self.iket("report", "--json", capture).json()
        self.assertEqual(len({row["kernel"] for row in report["ranges"]}), 2)
        for row in report["ranges"] + report["marks"]:
            kernel = names[int(row["kernel"].split("#")[1])]
            self.assertEqual((row["kernel_demangled"], row["kernel_mangled"]), (kernel["demangled"], kernel["name"]))
        self.assertNotIn("kernels of one name", self.iket("report", self.capture("complete")).out)

    def test_loss_is_said_and_partial_launches_are_left_out(self):
        capture = self.capture("lossy")
        report = self.iket("report", "--json", capture).json()
        counters = report["trust"]["counters"]
        self.assertGreater(counters["records_lost"], 0)
        self.assertEqual(
            counters["records_written"], counters["records_kept"] + counters["records_lost"]
        )
        launches = report["trust"]["launches"]
        self.assertLess(launches["complete"], launches["all"])
        text = self.iket("report", capture).out
        self.assertRegex(text, r"records .* lost \(\d+\.\d\d %\)")
        self.assertRegex(text, r"(?m)^  note +[\d,]+ records overwritten by newer ones$")

    def test_refusals_have_their_reasons(self):
        text = self.iket("report", self.capture("refused")).out
        self.assertRegex(text, r"(?m)^  refused +bad.*: names UR2 at 0x40$")

    def test_a_software_device_is_named_in_every_output(self):
        for kind, simulated in (("complete", False), ("simulated", True)):
            capture = self.capture(kind)
            texts = {
                "report": self.iket("report", capture).out,
                "info": self.iket("info", capture).out,
                "check": self.iket("check", capture).out,
                "export": self.iket("export", capture).out,
            }
            for command, text in texts.items():
                with self.subTest(command, kind=kind):
                    self.assertEqual("software" in text or "a model's" in text, simulated, text)
            heading = [line for line in texts["report"].splitlines() if "ranges and marks" in line]
            self.assertEqual("; times are a model's" in heading[0], simulated)

            says = lambda *command: self.iket(*command, "--json", capture).json()  # noqa: E731
            self.assertIs(says("report")["trust"]["simulated"], simulated)
            self.assertIs(says("info")["devices"][0]["simulated"], simulated)
            self.assertIs(says("check")["files"][0]["simulated"], simulated)
            driver = "iket's own driver" if simulated else "driver of unknown version"
            self.assertIn(f", {driver}", self.iket("info", capture).out)
            self.assertIs(says("export")["files"][0]["simulated"], simulated)

    def test_nothing_recorded_is_4(self):
        self.assert_one_line(self.iket("report", self.capture("empty")), 4)


class RecordedTest(harness.CliTest):
    """The captures of the examples that were recorded on an H200: complete, and without a doubt."""

    def test_recorded_captures(self):
        captures = glob.glob(os.path.join(harness.SOURCE_DIR, "tests", "data", "h200", "*.iketcap"))
        self.assertTrue(captures)
        for capture in captures:
            with self.subTest(capture=capture):
                self.assertEqual(self.iket("check", capture).code, 0)
                report = self.iket("report", "--json", capture).json()
                trust = report["trust"]
                self.assertEqual(trust["launches"]["complete"], trust["launches"]["all"])
                self.assertEqual(trust["counters"]["records_lost"], 0)
                self.assertEqual(trust["refused"], [])
                # Every record is a begin, an identity, an event, of which a range has two, or behind one: in each of
                # 26 rounds of values.cu that are three.
                behind = 26 * 3 if capture.endswith("values.iketcap") else 0
                ranges = sum(row["n"] for row in report["ranges"])
                marks = sum(row["n"] for row in report["marks"])
                self.assertEqual(
                    2 * trust["warps"] + 2 * ranges + marks + behind, trust["counters"]["records_kept"]
                )


if __name__ == "__main__":
    unittest.main()
