"""iket profile without a GPU: options, folders, exit codes, who may be traced."""

import os
import shutil
import signal
import subprocess
import time
import unittest

import harness


class ProfileTest(harness.CliTest):
    def test_wrong_use(self):
        for arguments in (
            [],
            ["--"],
            ["--frobnicate", "--", "true"],
            ["--ring", "lots", "--", "true"],
            ["--ring", "5000", "--", "true"],
            ["--ring", "1K", "--", "true"],
            ["--export", "docx", "--", "true"],
            ["-o", "%z", "--", "true"],
            ["-o", "", "--", "true"],
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line(self.iket("profile", *arguments), 2)
                self.assertEqual(os.listdir(self.folder), [])

    def test_programs_that_cannot_run(self):
        self.write("script", b"#!/bin/sh\n")
        for command, why in (
            ("no-such-program", "not found"),
            ("./missing", "missing"),
            ("./script", "not executable"),
        ):
            with self.subTest(command=command):
                result = self.iket("profile", "--", command)
                self.assert_one_line(result, 2)
                self.assertIn(why, result.err)

    def test_a_mistyped_program_removes_nothing(self):
        self.iket("profile", "--", "true")
        kept = self.write("iket_output/iket_pid_0x1.iketcap", b"an earlier run")
        self.assert_one_line(self.iket("profile", "--", "./typo"), 2)
        self.assertTrue(os.path.exists(kept))

    def test_what_a_killed_run_left_is_not_the_next_ones(self):
        self.iket("profile", "--", "true")
        left = [self.write(f"iket_output/iket_pid_0x1{suffix}", b"left")
                for suffix in (".iketcap.part", ".launches")]
        result = self.iket("profile", "--", "true")
        self.assertEqual(result.code, 4, result.err)
        self.assertFalse(any(map(os.path.exists, left)))

    def test_two_runs_do_not_share_a_folder(self):
        result = self.iket("profile", "--", self.program, "profile", "--", "true")
        self.assertIn("another iket profile is using it", result.err)

    def test_ends_with_a_program_that_ends_at_once(self):
        for _ in range(20):
            self.assertEqual(self.iket("profile", "--", "sh", "-c", "exit 3").code, 3)

    def test_an_interrupt_to_iket_alone_reaches_the_program(self):
        process = subprocess.Popen([self.program, "profile", "--", "sleep", "30"], cwd=self.folder,
                                   stderr=subprocess.DEVNULL)
        while not os.path.exists(self.path("iket_output/.iket_output")):
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 128 + signal.SIGINT)

    def test_a_library_path_that_ld_preload_cannot_hold(self):
        """Blanks and colons separate the libraries in LD_PRELOAD."""
        build = os.path.dirname(os.path.dirname(self.program))
        for name in ("a b", "a:b"):
            with self.subTest(name):
                os.makedirs(self.path(f"{name}/bin"))
                shutil.copy(self.program, self.path(f"{name}/bin/iket"))
                os.symlink(os.path.join(build, "lib"), self.path(f"{name}/lib"))
                result = self.run_program(self.path(f"{name}/bin/iket"), "profile", "--clobber",
                                          "--", "cat", "/proc/self/maps")
                self.assertNotIn("ld.so", result.err)
                self.assertIn("libiket_inject.so", result.out)

    def test_program_without_gpu_code_is_4_and_its_output_is_untouched(self):
        result = self.iket("profile", "--", "echo", "hello", "-n")
        self.assertEqual(result.code, 4, result.err)
        self.assertEqual(result.out, "hello -n\n")
        self.assertRegex(result.err, "nothing was recorded: (no NVIDIA driver on this machine|"
                         "cuInit: |no process loaded GPU code)")

    def test_options_of_the_program_are_its_own(self):
        for separator in (["--"], []):
            result = self.iket("profile", *separator, "echo", "--json", "-o", "x")
            self.assertEqual(result.out, "--json -o x\n", result.err)

    def test_exit_code_of_the_program(self):
        for code in (1, 3, 77):
            result = self.iket("profile", "--", "sh", "-c", f"exit {code}")
            self.assertEqual(result.code, code)
        result = self.iket("profile", "--", "sh", "-c", "kill -TERM $$")
        self.assertEqual(result.code, 128 + 15)

    def test_folder(self):
        self.iket("profile", "--", "true")
        self.assertEqual(os.listdir(self.path("iket_output")), [".iket_output"])
        stale = self.write("iket_output/iket_pid_0x1.iketcap", b"stale")
        self.iket("profile", "--", "true")
        self.assertFalse(os.path.exists(stale))
        self.iket("profile", "-o", "run_%q{JOB}", "--", "true", env={**os.environ, "JOB": "7"})
        self.assertTrue(os.path.isdir(self.path("run_7")))

    def test_foreign_folder_needs_clobber(self):
        os.mkdir(self.path("mine"))
        self.write("mine/thesis.tex", b"x")
        result = self.iket("profile", "-o", "mine", "--", "sh", "-c", "touch ran")
        self.assert_one_line(result, 2)
        self.assertIn("--clobber", result.err)
        self.assertFalse(os.path.exists(self.path("ran")))
        self.iket("profile", "-o", "mine", "--clobber", "--", "sh", "-c", "touch ran")
        self.assertTrue(os.path.exists(self.path("ran")))
        self.assertTrue(os.path.exists(self.path("mine/thesis.tex")))

    def test_file_in_the_way(self):
        self.write("iket_output", b"x")
        self.assert_one_line(self.iket("profile", "--clobber", "--", "true"), 2)


if __name__ == "__main__":
    unittest.main()
