"""iket doctor: says what is there, and what to do about what is not."""

import json
import os
import shutil
import signal
import subprocess
import time
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

    def trial(self, program, **environment):
        """The finding of a trial on the software device."""
        device = self.about(self.findings(), "software device")[0]["what"]
        done = subprocess.run([program, "doctor", "--trial", "--json"], timeout=120, stdout=subprocess.PIPE, check=False,
                              env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(device), **environment})
        findings = json.loads(done.stdout)["findings"]
        (trial,) = self.about(findings, "trial")
        self.assertEqual(done.returncode, 1 if any(row["verdict"] == "bad" for row in findings) else 0)
        return trial

    def test_a_trial(self):
        """12 warps with 22 events each, one a CTA for its group, 32 for each lane, whatever else is to be recorded."""
        trial = self.trial(os.environ["IKET"], IKET_SELECTION="kernel ^none$")
        self.assertEqual(trial["verdict"], "ok", trial)
        self.assertEqual(trial["what"], "GPU 0: 12 warps and 396 events of a kernel with marks, as they must be")

    def test_a_trial_that_fails(self):
        """Without the kernel, with one that is damaged, and where there is no place for a capture."""
        program = os.path.join(self.folder, "bin", "iket")
        os.mkdir(os.path.dirname(program))
        shutil.copy(os.environ["IKET"], program)
        lib = os.path.join(os.path.dirname(os.path.dirname(os.environ["IKET"])), "lib")
        os.mkdir(os.path.join(self.folder, "lib"))
        os.symlink(os.path.join(lib, "libiket_inject.so"), os.path.join(self.folder, "lib", "libiket_inject.so"))
        trial = self.trial(program)
        self.assertEqual(trial["verdict"], "bad")
        self.assertIn("not tried: ", trial["what"])
        self.assertIn("trial.fatbin: No such file or directory", trial["what"])
        os.mkdir(os.path.join(self.folder, "lib", "iket"))
        image = os.path.join(self.folder, "lib", "iket", "trial.fatbin")
        with open(image, "wb") as file:
            file.write(b"no code")
        self.assertRegex(self.trial(program)["what"], "GPU 0: .*cuModuleLoadData: CUDA_ERROR_")
        os.unlink(image)
        os.symlink(os.path.join(lib, "iket", "trial.fatbin"), image)
        self.assertEqual(self.trial(program)["verdict"], "ok")
        for folder in ("/proc", "/nonexistent", "/etc/passwd", ""):
            trial = self.trial(program, TMPDIR=folder)
            if folder:
                self.assertIn("not tried: no folder", trial["what"])
        self.assertEqual(self.trial(program, IKET_RING_BYTES="nonsense", IKET_MEMORY_BYTES="1")["verdict"], "ok")

    def test_a_trial_that_is_interrupted(self):
        """It ends at once, and leaves nothing behind."""
        device = self.about(self.findings(), "software device")[0]["what"]
        scratch = os.path.join(self.folder, "scratch")
        os.mkdir(scratch)
        environment = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(device), "TMPDIR": scratch}
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for delay in range(0, 40, 4):
                with subprocess.Popen([os.environ["IKET"], "doctor", "--trial"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, env=environment) as running:
                    time.sleep(delay / 1000)
                    running.send_signal(sent)
                    self.assertIn(running.wait(timeout=60), (-sent, 0))
                self.assertEqual(os.listdir(scratch), [], f"{sent.name} after {delay} ms")

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
