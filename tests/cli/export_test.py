"""iket export: names, overwriting, whole files only."""

import base64
import gzip
import json
import os
import re
import resource
import signal
import sqlite3
import stat
import subprocess
import unittest
import zlib

import harness


class ExportTest(harness.CliTest):
    def test_written_beside_the_capture(self):
        result = self.iket("export", self.capture("complete"))
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.out, r"^\S+complete\.pftrace: \S+ k?B, 8 warps, 168 events\n$")
        self.assertIn(b"Warp Life Time", self.read("complete.pftrace"))

    def test_json(self):
        capture = self.capture("complete")
        (file,) = self.iket("export", "--json", capture).json()["files"]
        self.assertEqual(file["capture"], capture)
        self.assertEqual(file["bytes"], os.path.getsize(self.path("complete.pftrace")))
        self.assertEqual(file["warps"], 8)

    def test_every_format(self):
        capture = self.capture("complete")
        for name, opens in (("pftrace.gz", gzip.decompress), ("trace.json", json.loads),
                            ("trace.json.gz", lambda data: json.loads(gzip.decompress(data)))):
            result = self.iket("export", "--format", name, capture)
            self.assertEqual(result.code, 0, result.err)
            self.assertIn(f"complete.{name}: ", result.out)
            self.assertTrue(opens(self.read(f"complete.{name}")))
        self.assertEqual(gzip.decompress(self.read("complete.pftrace.gz")),
                         (self.iket("export", capture), self.read("complete.pftrace"))[1])
        self.assert_one_line(self.iket("export", "--format", "svg", capture), 2)

    def test_the_name_says_the_format(self):
        capture = self.capture("complete")
        def made_as(format_name):
            self.assertEqual(
                self.iket("export", "--format", format_name, "-o", "same", capture).code, 0)
            return self.read("same")
        for name, format_name in (("x.pftrace", "pftrace"), ("x.pftrace.gz", "pftrace.gz"),
                                  ("x.trace.json", "trace.json"), ("x.json", "trace.json"),
                                  ("x.trace.json.gz", "trace.json.gz"),
                                  ("x.json.gz", "trace.json.gz"),
                                  ("x.perfetto-trace.gz", "pftrace.gz"), ("x", "pftrace")):
            with self.subTest(name=name):
                result = self.iket("export", capture, "-o", name)
                self.assertEqual(result.code, 0, result.err)
                self.assertEqual(self.read(name), made_as(format_name))
                result = self.iket("export", capture, "-o", name, "--format", format_name)
                self.assertEqual(result.code, 0, result.err)

    def test_several_captures_on_one_axis(self):
        """Of an H200: both joined to the host's clock by their launches."""
        folder = os.path.join(os.environ["IKET_SOURCE_DIR"], "tests", "data", "h200")
        captures = [os.path.join(folder, name + ".iketcap") for name in ("saxpy_marked", "gemm_wgmma_marked")]
        alone = [self.iket("export", "--json", capture, "-o", "one.pftrace").json()["files"][0] for capture in captures]
        for name in ("both.pftrace", "both.trace.json", "both.sqlite", "both.csv", "both.chrome.json", "both.html"):
            with self.subTest(name=name):
                result = self.iket("export", "--json", *captures, "-o", name)
                self.assertEqual((result.code, result.err), (0, ""))
                (file,) = result.json()["files"]
                self.assertEqual((file["warps"], file["events"]),
                                 tuple(sum(one[key] for one in alone) for key in ("warps", "events")))
                self.assertEqual(self.iket("check", name).code, 0)
        database = sqlite3.connect(self.path("both.sqlite"))
        self.addCleanup(database.close)
        names = [row[0] for row in database.execute("SELECT name FROM device ORDER BY id")]
        self.assertEqual(len(set(names)), 2)
        for name in names:
            self.assertRegex(name, r"^NVIDIA H200 0 of process \d+$")
        split = self.iket("export", *captures, "-o", "each.csv", "--split", "launch")
        self.assertEqual((split.code, split.out.count("each.")), (0, 2), split.err)

    def test_a_page_of_several_captures_with_a_summary(self):
        folder = os.path.join(os.environ["IKET_SOURCE_DIR"], "tests", "data", "h200")
        captures = [os.path.join(folder, name + ".iketcap") for name in ("saxpy_marked", "gemm_wgmma_marked")]
        for name, options, shown in (("all.html", ("--page-slices", "20000"), r"\d+ of 2496 warps .* since more is not to be"),
                                     ("sm.html", ("--summarize-rest", "--sm", "3"), r"\d+ of 2496 warps")):
            with self.subTest(name):
                result = self.iket("export", *captures, "-o", name, *options)
                self.assertEqual(result.code, 0, result.err)
                self.assertRegex(result.err, rf"^iket: warning: {name}: {shown}")
                checked = self.iket("check", name)
                self.assertIn("sound: 2 launches, 2,496 warps, 25,856 ranges, 4,224 markers", checked.out)
                data = re.search(rb'id="head" data-size="\d+">([^<]*)', self.read(name))[1]
                summary = json.loads(zlib.decompress(base64.b64decode(data)))["summary"]
                # What makes more of the same, without where it lies.
                self.assertEqual(summary["capture"], f"saxpy_marked.iketcap gemm_wgmma_marked.iketcap -o {name}")
        self.assert_one_line(self.iket("export", *captures, "-o", "x.csv", "--page-slices", "7"), 2)

    def test_a_model_s_time_is_on_no_axis_with_others(self):
        capture = self.capture("complete")
        other = os.path.join(os.environ["IKET_SOURCE_DIR"], "tests", "data", "capture", "raw.iketcap")
        result = self.iket("export", capture, other, "-o", "both.pftrace")
        self.assert_one_line(result, 2)
        self.assertIn("cannot be put on one axis", result.err)
        self.assertFalse(os.path.exists(self.path("both.pftrace")))

    def test_a_name_that_says_another_format(self):
        capture = self.capture("complete")
        for name, format_name in (("x.trace.json", "pftrace"), ("x.json", "trace.json.gz"),
                                  ("x.pftrace", "pftrace.gz"), ("x.pftrace.gz", "trace.json.gz"),
                                  ("x.gz", "trace.json")):
            with self.subTest(name=name):
                result = self.iket("export", capture, "-o", name, "--format", format_name)
                self.assert_one_line(result, 2)
                self.assertIn(f"--format {format_name} and -o {name}", result.err)
                self.assertFalse(os.path.exists(self.path(name)))
        self.assert_one_line(self.iket("export", capture, "-o", "new.iketcap"), 2)

    def test_standard_output_has_the_trace_alone(self):
        capture = self.capture("complete")
        for format_name in ("pftrace", "trace.json"):
            self.assertEqual(self.iket("export", "--format", format_name, capture).code, 0)
            for name in ("-", "/dev/stdout"):
                with self.subTest(format=format_name, name=name):
                    with open(self.path("out"), "wb") as out:
                        result = self.iket("export", "--format", format_name, capture, "-o", name,
                                           stdout=out)
                    self.assertEqual((result.code, result.err), (0, ""))
                    self.assertEqual(self.read("out"), self.read("complete." + format_name))
        self.assertFalse(os.path.exists(self.path("-")))
        self.assert_one_line(self.iket("export", "--json", capture, "-o", "-"), 2)
        if os.path.exists("/dev/full"):
            with open("/dev/full", "wb") as full:
                result = self.iket("export", capture, "-o", "-", stdout=full)
            self.assert_one_line(result, 3)
        controller, terminal = os.openpty()
        result = self.iket("export", capture, "-o", "-", stdout=terminal)
        self.assert_one_line(result, 2)
        os.close(terminal)
        os.close(controller)

    def test_file_size_limit(self):
        capture = self.capture("complete")
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        result = self.iket("export", capture, preexec_fn=limit)
        self.assert_one_line(result, 3)
        self.assertIn("File too large", result.err)
        self.assertEqual([name for name in os.listdir(self.folder) if "pftrace" in name], [])

    def test_nothing_beside_devices(self):
        with open(self.capture("complete"), "rb") as capture:
            self.assert_one_line(self.iket("export", "/dev/stdin", stdin=capture), 2)

    def test_nothing_to_export_is_said(self):
        with open(self.capture("complete"), "rb") as file:
            head = file.read()[:600]
        result = self.iket("export", self.write("cut.iketcap", head))
        self.assertNotEqual(result.code, 0)
        self.assertFalse(os.path.exists(self.path("cut.pftrace")))
        self.assertIn("cut.iketcap", result.err)

    def test_output_name(self):
        result = self.iket("export", self.capture("complete"), "-o", "x.pftrace")
        self.assertEqual(result.code, 0, result.err)
        self.assertTrue(os.path.exists(self.path("x.pftrace")))

    def test_several_captures(self):
        one, two = self.capture("complete"), self.capture("refused")
        self.assertEqual(self.iket("export", one, two).code, 0)
        self.assertTrue(os.path.exists(self.path("complete.pftrace")))
        self.assertTrue(os.path.exists(self.path("refused.pftrace")))

    def test_devices_and_links_stay_what_they_are(self):
        capture = self.capture("complete")
        os.mkfifo(self.path("pipe"))
        reader = subprocess.Popen(["cat", self.path("pipe")], stdout=subprocess.PIPE)
        self.assertEqual(self.iket("export", capture, "-o", self.path("pipe")).code, 0)
        self.assertGreater(len(reader.communicate(timeout=20)[0]), 1000)
        self.assertTrue(stat.S_ISFIFO(os.lstat(self.path("pipe")).st_mode))
        self.write("target", b"old")
        os.symlink("target", self.path("link"))
        self.assertEqual(self.iket("export", capture, "-o", self.path("link")).code, 0)
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertGreater(os.path.getsize(self.path("target")), 1000)
        if os.path.exists("/dev/full"):
            self.assert_one_line(self.iket("export", capture, "-o", "/dev/full"), 3)

    def test_a_link_to_nothing_has_it_made(self):
        os.symlink("made.pftrace", self.path("link.pftrace"))
        result = self.iket("export", "-o", "link.pftrace", self.capture("complete"))
        self.assertEqual(result.code, 0, result.err)
        self.assertTrue(os.path.islink(self.path("link.pftrace")))
        self.assertIn(b"Warp Life Time", self.read("made.pftrace"))

    def test_never_onto_the_capture(self):
        capture = self.capture("complete")
        before = self.read("complete.iketcap")
        self.assert_one_line(self.iket("export", capture, "-o", "complete.iketcap"), 2)
        self.assertEqual(self.read("complete.iketcap"), before)

    def test_folder_that_is_not_there(self):
        result = self.iket("export", self.capture("complete"), "-o", "no/where.pftrace")
        self.assert_one_line(result, 3)
        self.assertIn("-o", result.err)

    def test_cycles(self):
        capture = self.capture("complete")
        self.iket("export", capture)
        plain = len(self.read("complete.pftrace"))
        self.iket("export", "--cycles", capture)
        self.assertGreater(len(self.read("complete.pftrace")), plain)
        # Where it would do nothing it is refused.
        for options in (["--format", "trace.json"], ["-o", "x.json.gz"]):
            result = self.iket("export", "--cycles", capture, *options)
            self.assert_one_line(result, 2)
            self.assertIn("--cycles", result.err)

    def test_nothing_recorded_writes_nothing(self):
        self.assert_one_line(self.iket("export", self.capture("empty")), 4)
        self.assertFalse(os.path.exists(self.path("empty.pftrace")))

    def test_full_disk_leaves_no_file(self):
        capture = self.capture("lossy")
        result = self.iket(
            "export", capture, preexec_fn=lambda: _limit_file_size(10_000)
        )
        self.assert_one_line(result, 3)
        self.assertEqual(os.listdir(self.folder), ["lossy.iketcap"])


def _limit_file_size(size):
    import resource  # in the child

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


if __name__ == "__main__":
    unittest.main()
