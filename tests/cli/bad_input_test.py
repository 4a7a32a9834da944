"""Cut, bit-flipped and foreign files: one clear line, never a crash."""

import os
import random
import unittest

import harness

READERS = (["report"], ["report", "--json"], ["check"], ["export", "-o", "x.pftrace"], ["info"])


class BadInputTest(harness.CliTest):
    def test_files_that_are_not_captures(self):
        for name, data in {
            "missing": None,
            "empty": b"",
            "text": b"hello\n" * 100,
            "zeros": bytes(4096),
            "elf": b"\x7fELF" + bytes(60),
        }.items():
            if data is not None:
                self.write(name, data)
            for command in READERS:
                with self.subTest(file=name, command=command):
                    if (name, command) == ("empty", ["check"]):
                        continue  # a fault that it finds: check_test
                    self.assert_one_line(self.iket(*command, self.path(name)), 3)

    def test_a_folder(self):
        for command in READERS:
            self.assert_one_line(self.iket(*command, self.folder), 3)

    def test_pipes_and_devices(self):
        os.mkfifo(self.path("pipe"))
        for command in READERS:
            for name in (self.path("pipe"), "/dev/zero"):
                with self.subTest(file=name, command=command):
                    self.assert_one_line(self.iket(*command, name), 3)

    def test_one_bad_file_does_not_hide_the_others(self):
        self.capture("complete")
        good, bad = self.path("complete.iketcap"), self.path("missing.iketcap")
        for files in ((good, bad), (bad, good)):
            with self.subTest(files=files):
                result = self.iket("check", *files)
                self.assert_one_line(result, 3)
                self.assertIn("complete.iketcap: sound", result.out)
                result = self.iket("export", *files)
                self.assert_one_line(result, 3)
                self.assertIn("complete.pftrace", result.out)

    def survives(self, path, what):
        """Any verdict, but said in at most one line on stderr, and no signal."""
        for command in (["report"], ["check"], ["export", "-o", "x.pftrace"], ["info"]):
            with self.subTest(what=what, command=command):
                result = self.iket(*command, path)
                self.assertIn(result.code, (0, 1, 3, 4), result.err)
                self.assertLessEqual(len(result.err.splitlines()), 1, result.err)
                if result.code in (3, 4):
                    self.assertRegex(result.err, "^iket: ")

    def test_cut_captures(self):
        self.capture("complete")
        data = self.read("complete.iketcap")
        for size in (1, 31, 32, 40, 100, len(data) // 3, len(data) // 2, len(data) - 1):
            path = self.write("cut.iketcap", data[:size])
            self.survives(path, size)

    def test_a_cut_capture_gives_what_is_whole_in_it(self):
        self.capture("complete")
        data = self.read("complete.iketcap")
        path = self.write("cut.iketcap", data[:-8])
        result = self.iket("report", path)
        self.assertEqual(result.code, 3)
        self.assertIn("damaged", result.err)
        self.assertIn("8, 0 without begin", result.out)

    def test_flipped_captures(self):
        self.capture("complete")
        data = bytearray(self.read("complete.iketcap"))
        dice = random.Random(1)
        for _ in range(25):
            at, bit = dice.randrange(len(data)), 1 << dice.randrange(8)
            data[at] ^= bit
            path = self.write("flipped.iketcap", data)
            self.survives(path, at)
            data[at] ^= bit

    def test_control_characters_of_a_file_stay_out_of_the_terminal(self):
        result = self.iket("report", self.path("no\x1b[31mfile"))
        self.assert_one_line(result, 3)
        self.assertNotIn("\x1b", result.err)


if __name__ == "__main__":
    unittest.main()
