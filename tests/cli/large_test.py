"""Captures that are larger, decoded, than memory: every command reads them, and says the same."""

import os
import shutil
import tempfile
import unittest

import harness

FORMATS = ("pftrace", "trace.json", "chrome.json", "csv", "sqlite", "html", "pftrace.gz")


class LargeTest(harness.CliTest):
    """IKET_DECODE_BYTES says how much memory there is. Columns below 16 MiB stay on the heap: this has more."""

    def in_files(self, *arguments, **variables):
        # What memory there is, is less than any capture takes: 64 MiB are the least that is kept.
        return self.iket(*arguments, env={**os.environ, "IKET_DECODE_BYTES": "1000000", **variables})

    def large(self):
        return self.capture("stream:2500000")

    def test_every_format_is_the_same_as_from_memory(self):
        capture = self.large()
        for name in FORMATS:
            with self.subTest(format=name):
                # The page has the name of its capture in it, not its own.
                memory, files = self.path(f"memory.{name}"), self.path(f"files.{name}")
                done = self.iket("export", capture, "--format", name, "-o", memory)
                self.assertEqual((done.code, done.err), (0, ""))
                done = self.in_files("export", capture, "--format", name, "-o", files)
                self.assertEqual(done.code, 0, done.err)
                self.assertRegex(done.err, r"^iket: warning: \S+: larger, decoded, than memory \(\d+ MB of 1.00 MB\): "
                                           r"it lies in files in \S+ meanwhile\n$")
                self.assertEqual(self.read(memory), self.read(files))
                os.remove(memory)
                os.remove(files)

    def test_parts_and_reports_are_the_same_as_from_memory(self):
        capture = self.large()
        for arguments in (
            ["report", capture],
            ["report", "--json", capture],
            ["show", capture],
            ["export", capture, "--launch", "1", "--cta", "5", "-o", "-", "--format", "csv"],
            ["export", capture, "--window", "20us..40us", "-o", "-", "--format", "trace.json"],
        ):
            with self.subTest(arguments=arguments):
                memory, files = self.iket(*arguments), self.in_files(*arguments)
                self.assertEqual((memory.code, memory.out), (files.code, files.out), files.err)
                self.assertEqual(memory.code, 0, memory.err)

    def test_files_are_where_tmpdir_says_and_leave_nothing(self):
        capture = self.large()
        folder = tempfile.mkdtemp(dir="/var/tmp")
        self.addCleanup(shutil.rmtree, folder)
        done = self.in_files("report", capture, TMPDIR=folder)
        self.assertEqual(done.code, 0)
        self.assertIn(f"it lies in files in {folder} meanwhile", done.err)
        self.assertEqual(os.listdir(folder), [])

    def test_a_folder_that_cannot_have_them_is_an_error(self):
        capture = self.large()
        for folder, reason in ((self.path("none"), "No such file or directory"), ("/dev/shm", "tmpfs")):
            done = self.in_files("report", capture, TMPDIR=folder)
            self.assertEqual(done.code, 3, done.err)
            self.assertIn(folder, done.err)
            self.assertNotIn("Traceback", done.err)
            if folder != "/dev/shm":
                self.assertIn("has no room for it", done.err)
            else:
                self.assertTrue(reason in done.err or "has no room for it" in done.err, done.err)

    def test_limits_of_the_shell_are_errors_and_no_signals(self):
        capture = self.large()
        # 12 MiB a file: less than any column that goes to one.
        command = f"ulimit -f 12288; exec {harness.IKET} report {capture}"
        done = self.run_program("/bin/sh", "-c", command, env={**os.environ, "IKET_DECODE_BYTES": "1000000"})
        self.assertEqual(done.code, 3, done.err)
        self.assertRegex(done.err, r"iket: \S+: no room for \d+ MB of what is larger than memory: File too large; set TMPDIR")

    def test_a_limit_that_is_no_number_is_an_error(self):
        capture = self.capture("complete")
        for value in ("abc", "-1", "99999999999999999999", "5G"):
            done = self.iket("report", capture, env={**os.environ, "IKET_DECODE_BYTES": value})
            self.assert_one_line(done, 2)
            self.assertIn(f"IKET_DECODE_BYTES={value}: not a number of bytes", done.err)
        self.assertEqual(self.iket("report", capture, env={**os.environ, "IKET_DECODE_BYTES": ""}).code, 0)


if __name__ == "__main__":
    unittest.main()
