"""iket doctor: says what is there, and what to do about what is not."""

import os
import unittest

import harness


class DoctorTest(harness.CliTest):
    def findings(self, **environment):
        env = {**os.environ, **environment}
        result = self.iket("doctor", "--json", env=env)
        findings = result.json()["findings"]
        bad = any(finding["verdict"] == "bad" for finding in findings)
        self.assertEqual(result.code, 1 if bad else 0, result.err)
        return findings

    def about(self, findings, about):
        return [finding for finding in findings if finding["about"] == about]

    def test_collector_is_beside_the_program(self):
        (collector,) = self.about(self.findings(), "collector")
        self.assertEqual(collector["verdict"], "ok", collector)
        self.assertTrue(os.path.isfile(collector["what"]), collector)

    def test_a_driver_that_is_not_one(self):
        # What the loader finds first wins, whatever this machine has.
        self.write("libcuda.so.1", b"no library")
        (driver,) = self.about(self.findings(LD_LIBRARY_PATH=self.folder), "driver")
        self.assertEqual(driver["verdict"], "bad", driver)
        self.assertIn("libcuda.so.1", driver["what"])
        self.assertIn("--device sim", driver["advice"])

    def test_a_driver_that_was_cut(self):
        device = self.about(self.findings(), "software device")[0]["what"]
        with open(device, "rb") as file:
            self.write("libcuda.so.1", file.read()[:100_000])
        (driver,) = self.about(self.findings(LD_LIBRARY_PATH=self.folder), "driver")
        self.assertEqual(driver["verdict"], "bad", driver)
        self.assertIn("libcuda.so.1", driver["what"])

    def test_the_software_device_is_a_driver_too(self):
        device = self.about(self.findings(), "software device")[0]
        if device["verdict"] != "ok":
            self.fail(device)
        findings = self.findings(LD_LIBRARY_PATH=os.path.dirname(device["what"]))
        (driver,) = self.about(findings, "driver")
        self.assertEqual(driver["verdict"], "note", findings)
        self.assertRegex(driver["what"], r"software device for CUDA \d+\.\d+ stands in")
        self.assertIn("LD_LIBRARY_PATH", driver["advice"])
        (gpu,) = self.about(findings, "gpu")
        self.assertRegex(gpu["what"], r"^GPU 0: .*software device.*, sm_90, 132 SMs$")

    def test_what_else_gets_into_programs(self):
        notes = self.about(self.findings(CUDA_INJECTION64_PATH="/opt/other.so"), "environment")
        self.assertTrue(any("CUDA_INJECTION64_PATH=/opt/other.so" in note["what"] for note in notes), notes)

    def test_text_has_a_line_for_each(self):
        result = self.iket("doctor", env={**os.environ, "LD_LIBRARY_PATH": ""})
        for word in ("collector", "driver", "software device", "environment", "folder"):
            self.assertIn(word, result.out)
        self.assertEqual(result.err, "")


if __name__ == "__main__":
    unittest.main()
