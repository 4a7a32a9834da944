"""iket export: parts of a capture, and a file a part, in every format."""

import csv
import io
import os
import sqlite3

import unittest

import harness

GEMM = os.path.join(harness.SOURCE_DIR, "tests", "data", "h200", "gemm_wgmma_marked.iketcap")
SAXPY = os.path.join(harness.SOURCE_DIR, "tests", "data", "h200", "saxpy_marked.iketcap")
FORMATS = ("pftrace", "pftrace.gz", "trace.json", "trace.json.gz", "chrome.json", "chrome.json.gz", "csv", "csv.gz",
           "sqlite")


class ExcerptTest(harness.CliTest):
    def rows(self, capture, *options):
        result = self.iket("export", capture, "-o", "x.csv", *options)
        self.assertEqual(result.code, 0, result.err)
        with open(self.path("x.csv"), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, strict=True))

    def events(self, rows):
        return [row for row in rows if row["event"]]

    def test_tables_are_sound(self):
        for name in FORMATS:
            with self.subTest(name):
                self.assertEqual(self.iket("export", GEMM, "-o", "x." + name).code, 0)
                checked = self.iket("check", "--json", "x." + name)
                self.assertEqual(checked.code, 0, checked.out)
                self.assertEqual(checked.json()["files"][0]["format"], name)
        result = self.iket("export", GEMM, "--format", "csv", "-o", "-")
        self.assertGreater(len(list(csv.reader(io.StringIO(result.out)))), 1000)
        self.assertEqual([name for name in os.listdir(self.folder) if "iket" in name], [])

    def test_damage_is_found(self):
        self.assertEqual(self.iket("export", GEMM, "-o", "x.sqlite").code, 0)
        database = sqlite3.connect(self.path("x.sqlite"))
        database.execute("UPDATE slice SET end_ns = start_ns - 1 WHERE id = 7")
        database.commit()
        database.close()
        checked = self.iket("check", "x.sqlite")
        self.assertEqual(checked.code, 1)
        self.assertIn("1 slices end before they begin", checked.out)
        self.write("y.csv", b"a,b\n1,2\n")
        self.assertEqual(self.iket("check", "y.csv").code, 1)

    def test_each_filter(self):
        whole = self.rows(GEMM)
        some = self.events(whole)
        for options, wanted in (
                (("--name", "^mma$"), lambda row: row["name"] == "mma"),
                (("--range-filter", "mma|wait"), lambda row: "mma" in row["name"] or "wait" in row["name"]),
                (("--cta", "1"), lambda row: (row["cta_x"], row["cta_y"]) == ("1", "0")),
                (("--cluster", "2,0,0"), lambda row: (row["cta_x"], row["cta_y"]) == ("2", "0")),
                (("--sm", "0-20"), lambda row: int(row["sm"]) <= 20),
                (("--window", "2us..3us"), lambda row: int(row["start_ns"]) < 3000 and int(row["end_ns"]) > 1999),
                (("--kernel", "Gemm", "--launch", "0:9", "--cta", "3"), lambda row: row["cta_x"] == "3"),
        ):
            with self.subTest(options):
                rows = self.rows(GEMM, *options)
                expected = [row for row in some if wanted(row)]
                self.assertTrue(expected)

                def key(row):
                    return tuple(row[name] for name in ("cta_x", "warp", "name", "start_cycles", "end_cycles", "payload"))

                got, want = sorted(map(key, self.events(rows))), sorted(map(key, expected))
                self.assertEqual(got, want)
                (said,) = [row["payload"] for row in rows if row["name"] == "filter"]
                self.assertIn(options[1], said)

    def test_all_formats_have_them_and_say_so(self):
        for name in FORMATS:
            with self.subTest(name):
                result = self.iket("export", "--json", GEMM, "-o", "x." + name, "--cta", "1", "--window", "1us..4us")
                self.assertEqual(result.code, 0, result.err)
                self.assertEqual(result.json()["files"][0]["warps"], 12)
                self.assertEqual(self.iket("check", "x." + name).code, 0)
                if not name.endswith("gz"):
                    self.assertIn(b"only --cta 1 --window 1us..4us: 1 of 1 launches, 12 of 384 warps",
                                  self.read("x." + name))
        self.assertIn(b"crosses an edge of the window is whole", self.read("x.csv"))

    def test_what_leaves_nothing_is_said(self):
        for options, said in ((("--kernel", "nobody"), "the kernels GemmWgmma"),
                              (("--launch", "7"), "launches from #0 to #0"),
                              (("--name", "nobody"), "the names "),
                              (("--cta", "99"), "CTAs up to "), (("--sm", "200"), "SMs from "),
                              (("--window", "5s.."), "times from ")):
            with self.subTest(options):
                result = self.iket("export", GEMM, "-o", "none.pftrace", *options)
                self.assert_one_line(result, 4)
                self.assertIn(said, result.err)
                self.assertFalse(os.path.exists(self.path("none.pftrace")))
        for options in (("--window", "7"), ("--launch", "x"), ("--sm", "x"), ("--cta", "x"), ("--name", "("),
                        ("--split", "cta")):
            with self.subTest(options):
                self.assert_one_line(self.iket("export", GEMM, *options, "-o", "none.csv"), 2)

    def test_split(self):
        for by, format_name in (("sm", "csv"), ("launch", "pftrace"), ("kernel", "sqlite")):
            with self.subTest(by):
                whole = self.iket("export", "--json", SAXPY, "-o", "whole." + format_name).json()["files"][0]
                result = self.iket("export", "--json", SAXPY, "-o", f"{by}.{format_name}", "--split", by)
                self.assertEqual(result.code, 0, result.err)
                files = result.json()["files"]
                self.assertEqual(sum(file["events"] for file in files), whole["events"])
                self.assertEqual(sum(file["warps"] for file in files), whole["warps"])
                for file in files:
                    self.assertRegex(file["file"], rf"^{by}\.(sm\d+|launch\d+|kernel-\w+)\.{format_name}$")
                    self.assertEqual(self.iket("check", file["file"]).code, 0)
        result = self.iket("export", SAXPY, "-o", "a.csv", "--split", "sm", "--sm", "0-9")
        self.assertRegex(result.out, r"^(a\.sm\d\.csv: .* warps, .* events\n)+$")
        rows = list(csv.DictReader(io.StringIO(self.read("a.sm0.csv").decode())))
        self.assertEqual({row["sm"] for row in rows if row["sm"]}, {"0"})
        (said,) = [row["payload"] for row in rows if row["name"] == "filter"]
        self.assertIn("only SM 0 of what is only --sm 0-9", said)
        self.assert_one_line(self.iket("export", SAXPY, "-o", "-", "--split", "sm"), 2)

    def test_page(self):
        """Sound, also where what ranges lie in was not asked for."""
        for options in (("--name", "mma|wait"), ("--window", "1us..4us"), ("--cta", "1"), ("--launch", "0")):
            with self.subTest(options):
                for rest in ((), ("--summarize-rest",)):
                    self.assertEqual(self.iket("export", GEMM, "-o", "x.html", *options, *rest).code, 0)
                    checked = self.iket("check", "x.html")
                    self.assertEqual(checked.code, 0, checked.out)

    def test_summary(self):
        """What is not asked for is on the page as well, and so is what is too much for it."""
        result = self.iket("export", GEMM, "-o", "a.html", "--summarize-rest", "--cta", "1", "--window", "1us..4us")
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.err, r"a\.html: 12 of 384 warps are shown one by one, with \d+ of 9472 ranges and marks; the rest is a summary")
        result = self.iket("export", GEMM, "-o", "b.html", "--page-slices", "0")
        self.assertIn("0 of 384 warps", result.err)
        self.assertIn("since more is not to be on a page (iket export --page-slices)", result.err)
        self.assertEqual(self.iket("export", GEMM, "-o", "c.html").err, "")
        for name in ("a.html", "b.html", "c.html"):
            self.assertIn("sound: 1 launch, 384 warps, 9,472 ranges, 0 markers", self.iket("check", name).out)
        for options, said in ((("--summarize-rest",), "say what is not to be summarized"),
                              (("--summarize-rest", "--cta", "1", "--split", "sm"), "leave one out"),
                              (("--summarize-rest", "--cta", "1", "--format", "csv"), "csv has all"),
                              (("--page-slices", "7", "--format", "csv"), "csv has all"),
                              (("--page-slices", "x"), "page-slices")):
            with self.subTest(options):
                result = self.iket("export", GEMM, *(() if "csv" in options else ("-o", "none.html")), *options)
                self.assert_one_line(result, 2)
                self.assertIn(said, result.err)
        for options in (("--cta", "99"), ("--name", "nobody")):
            self.assert_one_line(self.iket("export", GEMM, "-o", "none.html", "--summarize-rest", *options), 4)
        self.assertFalse(os.path.exists(self.path("none.html")))


if __name__ == "__main__":
    unittest.main()
