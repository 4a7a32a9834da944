"""Help texts, versions, wrong use."""

import os
import subprocess
import unittest

import harness

COMMANDS = ["profile", "export", "report", "info", "check", "doctor", "config"]


class UsageTest(harness.CliTest):
    def test_help_names_every_command(self):
        result = self.iket("--help")
        self.assertEqual(result.code, 0)
        for command in [*COMMANDS, "view"]:
            self.assertRegex(result.out, rf"(?m)^  {command} ")
        self.assertIn("Exit codes: 0 done", result.out)

    def test_each_command_has_help(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                result = self.iket(command, "--help")
                self.assertEqual(result.code, 0)
                self.assertIn("--json", result.out)
                self.assertEqual(result.err, "")

    def test_version(self):
        result = self.iket("--version")
        self.assertEqual(result.code, 0)
        self.assertRegex(result.out, r"^iket \d+\.\d+\.\d+\n$")

    def test_wrong_use_is_one_line_and_2(self):
        for arguments in (
            [],
            ["frobnicate"],
            ["report"],
            ["report", "--frobnicate", "x"],
            ["export", "a", "--format", "docx"],
            ["check"],
            ["info"],
            ["config", "--enable"],
            ["config", "--prefix", "--libdir"],
            ["config", "--json", "--cflags"],
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line(self.iket(*arguments), 2)

    def test_unknown_commands_are_named(self):
        for word in ("profil", "help", "rprt"):
            result = self.iket(word)
            self.assert_one_line(result, 2)
            self.assertIn(f"unknown command '{word}'", result.err)

    def test_full_disk_under_standard_output_is_an_error(self):
        capture = self.capture("complete")
        with open("/dev/full", "wb") as full:
            result = self.iket("report", capture, stdout=full)
        self.assert_one_line(result, 3)
        self.assertIn("No space left on device", result.err)

    def test_full_disk_under_help_is_an_error(self):
        for arguments in (["--version"], ["--help"], ["info", "--help"]):
            with self.subTest(arguments=arguments), open("/dev/full", "wb") as full:
                result = self.iket(*arguments, stdout=full)
                self.assert_one_line(result, 3)
                self.assertIn("No space left on device", result.err)

    def test_an_empty_value_is_not_none_at_all(self):
        capture = self.capture("complete")
        for arguments in (
            ["info", capture, "--compare", ""],
            ["info", capture, "--compare="],
            ["info", ""],
            ["export", "-o", "", capture],
            ["export", "--output=", capture],
            ["export", "--format", "", capture],
            ["export", capture, ""],
            ["check", ""],
            ["report", ""],
            ["profile", "-o", "", "--", "true"],
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line(self.iket(*arguments), 2)
        self.assertFalse(os.path.exists(self.path("complete.pftrace")))

    def test_closed_pipe_ends_quietly(self):
        capture = self.capture("complete")
        done = subprocess.run(
            f"{harness.IKET} report {capture} --json | true",
            shell=True, capture_output=True, timeout=60, check=False,
        )
        self.assertEqual(done.stderr, b"")


if __name__ == "__main__":
    unittest.main()
