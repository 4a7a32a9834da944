"""official_check.py knows a trace of what official.cu marks, and says what is wrong with another."""
import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest

import official_check

SOURCE = os.environ["IKET_SOURCE_DIR"]


class OfficialCheckTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The trace that our collector makes of the kernel on the software device."""
        with tempfile.TemporaryDirectory() as folder:
            cubin, output = os.path.join(folder, "official.cubin"), os.path.join(folder, "out")
            subprocess.run([os.environ["IKET_NVCC"], "-std=c++20", "-arch=sm_90", "-DIKET_ENABLE",
                            "-DIKET_COMPAT=official", "-I" + SOURCE + "/include",
                            "-I" + SOURCE + "/examples", "-cubin", "-o", cubin,
                            os.path.join(SOURCE, "tests", "official", "official.cu")], check=True, timeout=300)
            subprocess.run([os.environ["IKET"], "profile", "--device", "sim", "--export", "trace.json", "-o", output, "--",
                            os.environ["IKET_HELLO"], cubin, "Forms", str(official_check.N)],
                           check=True, timeout=120, stdout=subprocess.DEVNULL)
            name, = (name for name in os.listdir(output) if name.endswith(".trace.json"))
            with open(os.path.join(output, name), encoding="utf-8") as file:
                cls.text = file.read()

    def differences(self, trace, extended=False):
        check = official_check.Check(trace)
        with contextlib.redirect_stdout(io.StringIO()):
            check.run(extended)
        return check.differences

    def test_what_is_marked(self):
        self.assertEqual(self.differences(json.loads(self.text)), [])

    def test_what_is_missing(self):
        trace = json.loads(self.text)
        del trace["launches"][0]["markers"][5]
        self.assertEqual(len(self.differences(trace)), 1)
        del trace["launches"][0]["ranges"][7]
        self.assertEqual(len(self.differences(trace)), 2)
        del trace["launches"][0]
        self.assertEqual(self.differences(trace), ["0 launches of Forms, 0 of all kernels"])

    def test_what_is_too_much(self):
        trace = json.loads(self.text)
        launch = trace["launches"][0]
        launch["ranges"].append(launch["ranges"][0])
        self.assertRegex(self.differences(trace)[0], "is not expected")

    def test_another_value(self):
        for change in ("begin", "end"):
            trace = json.loads(self.text)
            rows = [row for row in trace["launches"][0]["ranges"]
                    if trace["stringTable"][row["rangeNameIdx"]] == "tile"]
            rows[0]["internalEvents"][change == "end"]["payloadVal"] += 1
            self.assertEqual(len(self.differences(trace)), 2, change)

    def test_another_type(self):
        trace = json.loads(self.text)
        rows = [row for row in trace["launches"][0]["markers"]
                if trace["stringTable"][row["markerNameIdx"]] == "i8"]
        rows[0]["payloadType"] = 5
        self.assertEqual(len(self.differences(trace)), 2)
        trace["launches"][0]["ranges"][0]["rangeType"] ^= 3
        self.assertEqual(len(self.differences(trace)), 4)

    def test_more_names(self):
        found = self.differences(json.loads(self.text), extended=True)
        self.assertEqual(len(found), 20 * len(official_check.WARPS))


if __name__ == "__main__":
    unittest.main()
