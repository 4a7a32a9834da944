"""Runs `iket` for the command-line tests, and makes the files that they read."""

import json
import os
import subprocess
import tempfile
import unittest

IKET = os.environ["IKET"]
RUN_IKET = os.environ["RUN_IKET"]
MAKE_CAPTURE = os.environ["IKET_MAKE_CAPTURE"]
SOURCE_DIR = os.environ["IKET_SOURCE_DIR"]


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.out)


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    program = IKET

    def iket(self, *arguments, **options):
        return self.run_program(IKET, *arguments, **options)

    def run_program(self, program, *arguments, **options):
        options.setdefault("cwd", self.folder)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run(
            [program, *arguments], stderr=subprocess.PIPE, timeout=120, check=False, **options
        )
        if done.stdout is None:
            done.stdout = b""
        return Result(done)

    def capture(self, kind, name=None):
        """The path of a fresh capture of that kind (see make_capture.cpp)."""
        path = self.path(name or kind + ".iketcap")
        subprocess.run([MAKE_CAPTURE, kind, path], check=True)
        return path

    def write(self, name, data):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def read(self, *names):
        with open(self.path(*names), "rb") as file:
            return file.read()

    def assert_one_line(self, result, code):
        """A failure that says why in one line, and nothing of a crash."""
        self.assertEqual(result.code, code, result.err)
        lines = result.err.splitlines()
        self.assertEqual(len(lines), 1, result.err)
        self.assertRegex(lines[0], r"^(run-)?iket: .+")
