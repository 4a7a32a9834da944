"""What libiket_inject.so looks like to a process that never opens the driver: nothing.

Usage: library_test.py LIBRARY SYMBOLS_MAP
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY, SYMBOLS_MAP = (os.path.abspath(path) for path in sys.argv[1:3])

# What glibc itself is made of.
GLIBC = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|libpthread)\.so\.\d+")


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()


def declared_exports():
    with open(SYMBOLS_MAP, encoding="utf-8") as file:
        text = file.read()
    exported = text[text.index("global:") : text.index("local:")]
    return sorted(re.findall(r"^\s*(\w+);", exported, re.MULTILINE))


class Exports(unittest.TestCase):
    def test_are_those_of_the_map(self):
        lines = output_of("nm", "-D", "--defined-only", LIBRARY).splitlines()
        names = sorted(line.split()[-1].split("@")[0] for line in lines)
        self.assertGreater(len(names), 10)
        self.assertEqual(names, declared_exports())

    def test_need_glibc_alone(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-dW", LIBRARY))
        self.assertIn("libc.so.6", needed)
        self.assertEqual([name for name in needed if not GLIBC.fullmatch(name)], [])

    def test_have_no_text_relocations_and_no_executable_stack(self):
        self.assertNotIn("TEXTREL", output_of("readelf", "-dW", LIBRARY))
        stack = re.search(r"GNU_STACK.*", output_of("readelf", "-lW", LIBRARY)).group()
        self.assertNotIn("E", stack.replace("GNU_STACK", ""))


class Preloaded(unittest.TestCase):
    """Programs that are no CUDA programs, with and without the library, in every environment."""

    COMMANDS = (
        ["/bin/true"],
        ["/bin/false"],
        ["/bin/ls", "/"],
        ["/bin/ls", "/no/such/file"],
        ["/bin/sh", "-c", "echo out; echo err >&2; (exit 3); /bin/true; exit 4"],
        [sys.executable, "-c", "import ctypes, threading; print(ctypes.CDLL(None).getpid() > 0)"],
    )

    def run_in(self, folder, command, **variables):
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": folder, "TMPDIR": folder}
        environment.update(variables)
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def test_changes_nothing(self):
        for command in self.COMMANDS:
            with self.subTest(command=command), tempfile.TemporaryDirectory() as folder:
                plain = self.run_in(folder, command)
                environments = (
                    {},
                    {"IKET_OUTPUT": folder, "IKET_RING_BYTES": "32768"},
                    {"IKET_OUTPUT": folder, "IKET_SOCKET": os.path.join(folder, "missing")},
                    {"IKET_OUTPUT": "/no/such/folder", "IKET_RING_BYTES": "nonsense"},
                )
                for variables in environments:
                    preloaded = self.run_in(folder, command, LD_PRELOAD=LIBRARY, **variables)
                    self.assertEqual(preloaded, plain, variables)
                    self.assertEqual(os.listdir(folder), [], "files are left")

    def test_is_really_loaded(self):
        # The loader complains of what it cannot preload, and goes on: the test above would pass.
        with tempfile.TemporaryDirectory() as folder:
            command = ["/bin/cat", "/proc/self/maps"]
            _, maps, errors = self.run_in(folder, command, LD_PRELOAD=LIBRARY)
            self.assertIn(os.path.realpath(LIBRARY).encode(), maps)
            self.assertEqual(errors, b"")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
