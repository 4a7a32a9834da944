"""Bars on a terminal while work lasts, and Ctrl-C in the middle of it.

The clock is ours (fast_clock.c), so that a small file is long work, and that a test can stop at every place
where a bar is drawn.
"""

import errno
import fcntl
import os
import pty
import re
import signal
import subprocess
import termios
import unittest

import harness

FAST_CLOCK = os.environ["IKET_FAST_CLOCK"]


class ProgressTest(harness.CliTest):
    def start(self, *arguments, stop_at=0):
        """The process, and the end of the terminal that a person would sit at."""
        person, terminal = pty.openpty()
        self.addCleanup(os.close, person)

        def take_terminal():  # in the child: Ctrl-C comes to it
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

        variables = {**os.environ, "LD_PRELOAD": FAST_CLOCK}
        if stop_at:
            variables["STOP_AT_LOOK"] = str(stop_at)
        process = subprocess.Popen([harness.IKET, *arguments], env=variables, cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=terminal, preexec_fn=take_terminal)
        os.close(terminal)
        return process, person

    def seen(self, *arguments):
        """What a terminal shows of a run that succeeds."""
        process, person = self.start(*arguments)
        said = b""
        while True:
            try:
                part = os.read(person, 65536)
            except OSError as error:  # all ends of the process are closed
                self.assertEqual(error.errno, errno.EIO)
                break
            if not part:
                break
            said += part
        self.assertEqual(process.wait(timeout=60), 0, said)
        return said.decode()

    def bars(self, said):
        """{label: percentages} of bars that rise and are erased at the end."""
        found = {}
        for label, bar, share in re.findall(r"\r([^\r\[]+) \[([# ]{30})\] +(\d+) %"
                                             r"(?: [\d.e+-]+ M (?:records|events)/s,)?(?: \d+:\d\d left)?\x1b\[K", said):
            self.assertEqual(bar.count("#"), int(share) * 30 // 100, said)
            found.setdefault(label, []).append(int(share))
        for label, shares in found.items():
            self.assertEqual(shares, sorted(shares), label)
        self.assertTrue(said.endswith("\r\x1b[K"), repr(said))
        return found

    def files(self):
        """One file of each kind, for commands that read one."""
        capture = self.capture("complete")
        for name in ("pftrace", "trace.json.gz"):
            self.assertEqual(self.iket("export", "--format", name, capture).code, 0)
        return capture, self.path("complete.pftrace"), self.path("complete.trace.json.gz")

    def test_every_long_reading_has_a_bar(self):
        capture, pftrace, json = self.files()
        code = os.path.join(harness.SOURCE_DIR, "tests/data/cubin/saxpy.default.fatbin")
        for arguments, labels in (
            (["check", capture], {f"reading {capture}", f"checking {capture}"}),
            (["check", pftrace], {f"checking {pftrace}"}),
            (["check", json], {f"checking {json}"}),
            (["report", capture], {f"reading {capture}"}),
            (["info", capture], {f"reading {capture}"}),
            (["info", code], {f"reading {code}"}),
            (["export", capture, "-o", "x"], {f"reading {capture}", "writing x"}),
        ):
            with self.subTest(arguments=arguments):
                found = self.bars(self.seen(*arguments))
                self.assertEqual(set(found), labels)
                for label, shares in found.items():
                    self.assertEqual(shares[-1], 100, label)

    def test_a_bar_says_how_fast_it_is_and_how_long_it_takes(self):
        capture = self.capture("complete")
        said = self.seen("export", capture, "-o", "x")
        self.assertRegex(said, r"reading [^\r]+ % [\d.e+-]+ M records/s, \d+:\d\d left\x1b\[K")
        self.assertRegex(said, r"writing x [^\r]+ % [\d.e+-]+ M events/s, \d+:\d\d left\x1b\[K")

    def test_no_bar_where_nobody_looks(self):
        capture = self.capture("complete")
        result = self.iket("check", capture, env={**os.environ, "LD_PRELOAD": FAST_CLOCK})
        self.assertEqual((result.code, result.err), (0, ""))

    def is_pending(self, pid, number):
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            pending = re.search(r"(?m)^ShdPnd:\s+([0-9a-f]+)$", status.read()).group(1)
        return int(pending, 16) >> (number - 1) & 1

    def interrupted(self, *arguments):
        """Presses Ctrl-C at every look at the clock. Yields the files that were there at the moment and
        those that are left, once the process has died of it; a shell says 130."""
        for look in range(1, 10_000):
            process, person = self.start(*arguments, stop_at=look)
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                self.assertEqual(os.waitstatus_to_exitcode(status), 0)
                process.returncode = 0
                self.assertGreater(look, 2, "it never looked at the clock")
                return
            there = set(os.listdir(self.folder))
            os.write(person, b"\x03")
            while not self.is_pending(process.pid, signal.SIGINT):
                pass  # the terminal makes a signal of it in its own time
            process.send_signal(signal.SIGCONT)
            self.assertEqual(process.wait(timeout=60), -signal.SIGINT)
            yield there, set(os.listdir(self.folder))
        self.fail("it never ends")

    def test_ctrl_c_leaves_whole_files_or_none(self):
        for name in ("pftrace", "pftrace.gz", "trace.json", "trace.json.gz"):
            with self.subTest(format=name):
                capture = self.capture("complete")
                final = self.path(f"complete.{name}")
                self.assertEqual(self.iket("export", "--format", name, capture).code, 0)
                whole = self.read(final)
                os.remove(final)
                began = 0
                for there, left in self.interrupted("export", "--format", name, capture):
                    began += any(file.endswith(".tmp") for file in there)
                    self.assertEqual(left, {"complete.iketcap"})
                self.assertGreater(began, 0, "no Ctrl-C came while a file was being written")
                self.assertEqual(self.read(final), whole)
                os.remove(final)

    def test_ctrl_c_leaves_an_older_file_as_it_was(self):
        capture = self.capture("complete")
        self.write("complete.pftrace", b"of yesterday")
        looks = 0
        for _, left in self.interrupted("export", capture):
            looks += 1
            self.assertEqual(left, {"complete.iketcap", "complete.pftrace"})
            self.assertEqual(self.read("complete.pftrace"), b"of yesterday", f"at look {looks}")

    def test_ctrl_c_ends_what_only_reads(self):
        capture, pftrace, json = self.files()
        before = set(os.listdir(self.folder))
        for arguments in (["check", capture, pftrace, json], ["report", capture], ["info", capture]):
            with self.subTest(arguments=arguments):
                for _, left in self.interrupted(*arguments):
                    self.assertEqual(left, before)


if __name__ == "__main__":
    unittest.main()
