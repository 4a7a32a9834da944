"""iket check: captures, and what iket export made of them."""

import gzip
import json
import os
import re
import unittest

import harness

FORMATS = ("pftrace", "pftrace.gz", "trace.json", "trace.json.gz", "html")


class CheckTest(harness.CliTest):
    def test_sound(self):
        for kind in ("complete", "lossy", "refused"):
            with self.subTest(kind=kind):
                result = self.iket("check", self.capture(kind))
                self.assertEqual(result.code, 0, result.out)
                self.assertRegex(result.out, r"^\S+: sound: \d+ chunks, ")

    def test_one_of_a_kind_is_singular(self):
        data = bytearray(self.read(self.capture("complete")))
        data[len(data) // 2] ^= 1
        result = self.iket("check", self.write("flipped.iketcap", data))
        self.assertEqual(result.code, 1)
        self.assertIn(": 1 chunk missing, by the sequence numbers\n", result.out)
        self.assertNotRegex(result.out, r"\b1 \w+s\b")

    def test_a_name_is_shown_on_one_line(self):
        sound = self.read(self.capture("complete"))
        for name, shown in ((b"a\nb\x1b[1m", "a?b?[1m"), ("\u00e9\u20ac".encode(), "\u00e9\u20ac"),
                            (b"\xff\xc3(", "??("), ("\u009b1m".encode(), "?1m")):
            with self.subTest(name=name):
                path = os.path.join(os.fsencode(self.folder), name + b".iketcap")
                for data, says in ((sound, "sound: "), (b"", "nothing is in it")):
                    with open(path, "wb") as file:
                        file.write(data)
                    result = self.iket("check", path)
                    self.assertRegex(result.out, rf"^\S+/{re.escape(shown)}\.iketcap: {says}")
                    self.assertEqual(result.out.count("\n"), 1)
                self.assertIn(f"/{shown}.iketcap: ", self.iket("report", path).err)

    def test_json(self):
        good, cut = self.capture("complete"), self.capture("complete", "cut.iketcap")
        with open(cut, "rb+") as file:
            file.truncate(len(self.read("cut.iketcap")) - 20)
        result = self.iket("check", "--json", good, cut)
        self.assertEqual(result.code, 1)
        first, second = result.json()["files"]
        self.assertTrue(first["sound"])
        self.assertFalse(second["sound"])
        self.assertIn("cut", [fault["kind"] for fault in second["faults"]])


class CheckExportTest(harness.CliTest):
    def export(self, format_name):
        """The bytes of a sound export, whose file is gone again."""
        capture = self.capture("complete")
        path = self.path("export." + format_name)
        result = self.iket("export", "--format", format_name, "-o", path, capture)
        self.assertEqual(result.code, 0, result.err)
        return self.read("export." + format_name)

    def check(self, data, name):
        return self.iket("check", self.write(name, data))

    def test_sound(self):
        says = {"pftrace": r"[\d,]+ packets, [\d,]+ tracks, [\d,]+ events",
                "trace.json": r"[\d,]+ launch(es)?, [\d,]+ warps, [\d,]+ ranges, [\d,]+ markers?",
                "html": r"2 launches, 8 warps, 72 ranges, 24 markers"}
        for format_name in FORMATS:
            data = self.export(format_name)
            # By its name, and by how it begins.
            for name in ("file." + format_name, "file"):
                with self.subTest(name=name, format=format_name):
                    result = self.check(data, name)
                    self.assertEqual((result.code, result.err), (0, ""), result.out)
                    counts = says[format_name.removesuffix(".gz")]
                    self.assertRegex(result.out, rf"^\S+{name}: sound: {counts}\n$")

    def test_a_cut_file(self):
        for format_name, kind in (("pftrace", "cut"), ("trace.json", "json"), ("html", "shell")):
            with self.subTest(format=format_name):
                data = self.export(format_name)[:-3]
                result = self.iket("check", "--json", self.write("cut." + format_name, data))
                self.assertEqual(result.code, 1, result.err)
                (file,) = result.json()["files"]
                self.assertIs(file["sound"], False)
                self.assertEqual(file["format"], format_name)
                self.assertIn(kind, [fault["kind"] for fault in file["faults"]])
                self.assertTrue(all(fault["offset"] <= len(data) for fault in file["faults"]))
                result = self.check(data, "cut." + format_name)
                self.assertRegex(result.out, r"^\S+cut\.\S+: at byte \d+: ")

    def test_damaged_gzip(self):
        data = self.export("pftrace")
        two = gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :])
        self.assertEqual(self.check(two, "two.pftrace.gz").code, 0)
        one = gzip.compress(data)
        flipped = bytearray(one)
        flipped[len(one) // 2] ^= 1
        for name, damaged, says in (
            ("cut.pftrace.gz", two[:-1], f"at byte {len(two) - 1} of the compressed file: cut: "),
            ("cut.pftrace.gz", one[:-1], f"at byte {len(one) - 1} of the compressed file: cut: "),
            ("flipped.pftrace.gz", bytes(flipped), "of the compressed file: damaged: "),
            ("text.pftrace.gz", b"some text", "it does not begin as gzip does"),
        ):
            with self.subTest(name=name):
                result = self.check(damaged, name)
                self.assertEqual((result.code, result.err), (1, ""))
                self.assertEqual(len(result.out.splitlines()), 1, result.out)
                self.assertIn(says, result.out)
                (file,) = self.iket("check", "--json", self.path(name)).json()["files"]
                self.assertIs(file["sound"], False)
                self.assertEqual(file["format"], "pftrace.gz")
                self.assertEqual([fault["kind"] for fault in file["faults"]], ["gzip"])

    def test_empty_files(self):
        for name, format_name in (("x.pftrace", "pftrace"), ("x.trace.json", "trace.json"),
                                  ("x.pftrace.gz", "pftrace"), ("x.iketcap", "iketcap"),
                                  ("x", "unknown")):
            with self.subTest(name=name):
                result = self.check(b"", name)
                self.assertEqual((result.code, result.err), (1, ""))
                self.assertRegex(result.out, rf"^\S+{name}: (at byte 0: )?nothing is in it\n$")
                (file,) = self.iket("check", "--json", self.path(name)).json()["files"]
                self.assertIs(file["sound"], False)
                self.assertEqual(file["format"], format_name)

    def test_exports_of_a_software_device(self):
        for kind, simulated in (("complete", False), ("simulated", True)):
            capture = self.capture(kind)
            for format_name in FORMATS:
                with self.subTest(kind=kind, format=format_name):
                    path = self.path("x." + format_name)
                    self.assertEqual(self.iket("export", capture, "-o", path).code, 0)
                    (file,) = self.iket("check", "--json", path).json()["files"]
                    self.assertIs(file["simulated"], simulated)
                    said = ", of a software device\n" in self.iket("check", path).out
                    self.assertEqual(said, simulated)

    def test_a_key_that_is_missing(self):
        data = self.export("trace.json").replace(b'"gridId"', b'"gridID"', 1)
        result = self.check(data, "file.trace.json")
        self.assertEqual(result.code, 1)
        self.assertRegex(result.out, r"at byte \d+: a launch lacks gridId\n")

    def test_many_faults_are_cut_short(self):
        trace = json.loads(self.export("trace.json"))
        for place in trace["locationTable"]:
            del place["smId"]
        trace["locationTable"] *= 9
        count = len(trace["locationTable"])
        self.assertGreater(count, 20)
        result = self.check(json.dumps(trace).encode(), "file.trace.json")
        self.assertEqual(result.out.count("a location lacks smId"), 20)
        self.assertIn(f"and {count - 20} faults more", result.out)

    def test_a_page_that_was_changed(self):
        page = self.export("html")
        policy = b"default-src 'none'"
        for changed, says in (
            (page.replace(policy, b"default-src *", 1), "Content-Security-Policy is too weak: "),
            (page.replace(b"<header>", b"<header onclick>", 1), "what stands around the data is not"),
            (page[: page.index(b'id="links"')], "the part head is missing"),
            (page.replace(b"<!doctype", b"<!Doctype", 1), "it does not begin as a page of iket does"),
            (b"<!doctype html>\n<p>hello", "it does not begin as a page of iket does"),
        ):
            with self.subTest(says=says):
                result = self.check(changed, "file.html")
                self.assertEqual((result.code, result.err), (1, ""))
                self.assertIn(says, result.out)
                self.assertRegex(result.out, r"^\S+file\.html: at byte \d+: ")

    def test_what_is_none(self):
        for name in ("file.pftrace", "file.trace.json"):
            for data in (b"some text", bytes(1000)):
                with self.subTest(name=name, data=data[:9]):
                    self.assert_one_line(self.check(data, name), 3)
        self.assert_one_line(self.iket("check", self.path("missing.pftrace")), 3)


if __name__ == "__main__":
    unittest.main()
