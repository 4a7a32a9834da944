"""Marks of other tools: what `iket info` says of them, and captures of an H200 beside what run-iket recorded there."""

import json
import os
import sys
import tempfile

import harness

sys.path.insert(0, os.path.join(harness.SOURCE_DIR, "tests", "sim"))
import foreign_events  # noqa: E402

DATA = os.path.join(harness.SOURCE_DIR, "tests", "data")
NAMES = ("cpp", "many", "ranges", "tilelang", "types")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class ForeignMarksTest(harness.CliTest):
    def cubin(self, name):
        return os.path.join(DATA, "foreign", name + ".cubin")

    def test_captures_say_what_run_iket_says(self):
        for name in NAMES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                capture = os.path.join(DATA, "h200", f"foreign_{name}.iketcap")
                out = os.path.join(folder, "x.trace.json")
                result = self.iket("export", capture, "--format", "trace.json", "-o", out)
                self.assertEqual(result.code, 0, result.err)
                self.assertEqual(self.iket("check", capture, out).code, 0)
                launch, events = foreign_events.events_of(load(out))
                expected = load(os.path.join(DATA, "foreign", name + ".json"))
                self.assertEqual(launch["kernelName"], expected["kernel"])
                self.assertEqual(len(launch["warpLifetimes"]), expected["warps"])
                self.assertEqual(events, expected["events"])

    def test_info_names_them(self):
        text = self.iket("info", self.cubin("ranges")).out
        self.assertIn("foreign: NativeDump placeholders of NVIDIA's IKET, by another front end: 10 events", text)
        self.assertRegex(text, r"(?m)^  tile +token, either end +i32 +0x[0-9a-f]{8}$")
        self.assertRegex(text, r"(?m)^  kernel_cutlass_k_ranges\S+ +11 +18  traced$")
        self.assertNotIn("warning", text)
        foreign = self.iket("info", "--json", self.cubin("many")).json()["images"][0]["foreign"]
        self.assertEqual((foreign["method"], foreign["events"], foreign["refusal"]), ("ExtendedNativeDump", 40, ""))
        self.assertFalse(foreign["overwrites_shared_memory"])

    def test_info_refuses_by_name(self):
        with open(self.cubin("cpp"), "rb") as file:
            image = file.read()
        # Event "m": {60, 1, 3, ..}: other ids and methods.
        at = image.index(bytes([60, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0]))
        for offset, value, why in ((4, 33, "does not fit the 5 bits that NativeDump has"), (8, 4, "UTraceEvent"),
                                   (8, 5, "different methods"), (4, 2, "the same id 2")):
            changed = bytearray(image)
            changed[at + offset] = value
            text = self.iket("info", self.write("x.cubin", bytes(changed))).out
            self.assertIn(why, text)
            self.assertRegex(text, r"(?m)^  k\(float\*, int\) .* refused: ")

    def test_info_warns_before_sm_90(self):
        with open(self.cubin("cpp"), "rb") as file:
            image = bytearray(file.read())
        self.assertEqual(image[49], 90)  # of e_flags
        image[49] = 80
        text = self.iket("info", self.write("x.cubin", bytes(image))).out
        self.assertIn("store to byte 0x20 of the kernel's own shared memory", text)
