"""iket show: a CTA as text, and on a terminal, key by key."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import harness

GEMM = os.path.join(harness.SOURCE_DIR, "tests", "data", "h200", "gemm_wgmma_marked.iketcap")


class TextTest(harness.CliTest):
    def test_a_gemm_of_an_h200(self):
        result = self.iket("show", GEMM, "--width", "110")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertNotIn("\x1b", result.out)
        lines = result.out.splitlines()
        self.assertEqual(lines[0], "GemmWgmma #0, CTA 0,0,0 on SM 126: 12 warps, 16.4 us (29,974 cycles)")
        self.assertIn("CTA 1 of 32 that are kept, launch 1 of 1", lines[1])
        rows = [line for line in lines if line.startswith("warp")]
        self.assertEqual(len(rows), 12)
        # Eight warps multiply and then store; one loads; three do nothing.
        for row in rows[:8]:
            self.assertRegex(row, r"^warp  \d \(mma, full-wait\) \.+F[FM.]*M+\.*E+\.*$")
        self.assertRegex(rows[8], r"^warp  8 \(acquire, issue\) \.+A\.\.A+\.+$")
        for row in rows[9:]:
            self.assertRegex(row, r"^warp (9| 9|1\d) +\.+$")
        self.assertIn(" M   mma  128 times, 52.7 us", lines)
        self.assertLessEqual(max(len(line) for line in rows), 110)

    def test_parts(self):
        result = self.iket("show", GEMM, "--cta", "3,0,0", "--window", "4us..6us", "--no-marks")
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("CTA 3,0,0 on SM", result.out)
        self.assertIn("only 2.00 us", result.out)
        deep = self.iket("show", self.capture("complete"), "--depths")
        self.assertEqual(deep.code, 0, deep.err)
        self.assertIn("depth 1", deep.out)
        self.assertNotIn("depth 1", self.iket("show", self.capture("complete")).out)

    def test_colours_where_they_are_asked_for(self):
        coloured = self.iket("show", GEMM, "--colour", "always").out
        self.assertIn("\x1b[30;48;2;", coloured)
        self.assertEqual(re.sub(r" +$", "", re.sub(r"\x1b\[[\d;]*m", "", coloured), flags=re.M),
                         re.sub(r" +$", "", self.iket("show", GEMM).out, flags=re.M))

    def test_what_is_lost_is_said(self):
        result = self.iket("show", self.capture("lossy"))
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("not whole: ", result.out)
        self.assertIn("?", result.out)

    def test_bad_input(self):
        self.assert_one_line(self.iket("show", "missing.iketcap"), 3)
        self.assert_one_line(self.iket("show", self.write("x.iketcap", b"no capture")), 3)
        self.assert_one_line(self.iket("show", GEMM, "--cta", "99,0,0"), 4)
        self.assert_one_line(self.iket("show", GEMM, "--cta", "one"), 2)
        self.assert_one_line(self.iket("show", GEMM, "--width", "10"), 2)
        self.assert_one_line(self.iket("show", GEMM, "--window", "1s..2s"), 4)
        self.assert_one_line(self.iket("show", GEMM, "--window", "soon"), 2)
        self.assert_one_line(self.iket("show", GEMM, "--colour", "blue"), 2)


class Terminal:
    """`iket show` on a terminal of so many columns and rows, and what stands there."""

    def __init__(self, *arguments, size=(100, 30)):
        self.main, self.side = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self.side)
        self.process = subprocess.Popen([harness.IKET, "show", *arguments], stdin=self.side, stdout=self.side,
                                        stderr=subprocess.PIPE, start_new_session=True)
        self.output = b""

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        for descriptor in (self.main, self.side):
            os.close(descriptor)

    def resize(self, columns, rows):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.main, keys)

    def read(self, seconds=0.05):
        while select.select([self.main], [], [], seconds)[0]:
            try:
                self.output += os.read(self.main, 65536)
            except OSError:
                return

    def screen(self):
        """The lines of the last whole drawing: from its home sequence to the one that clears below."""
        frames = self.output.split(b"\x1b[H")[1:]
        whole = [frame for frame in frames if b"\x1b[J" in frame]
        if not whole:
            return []
        text = whole[-1].split(b"\x1b[J")[0].decode()
        return [re.sub(r"\x1b\[[\d;]*[mK]", "", line) for line in text.split("\r\n")]

    def until(self, test, seconds=20):
        """Waits for a screen of which this holds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read()
            if test(self.screen()):
                return self.screen()
        raise AssertionError("never on the screen; last:\n" + "\n".join(self.screen()))

    def until_text(self, text):
        return self.until(lambda lines: any(text in line for line in lines))

    def end(self):
        code = self.process.wait(20)
        self.read()
        return code


class TerminalTest(harness.CliTest):
    def terminal(self, *arguments, **options):
        terminal = Terminal(*arguments, **options)
        self.addCleanup(terminal.close)
        return terminal

    def assert_restored(self, terminal):
        self.assertTrue(terminal.output.endswith(b"\x1b[0m\x1b[?25h\x1b[?1049l"), terminal.output[-60:])
        self.assertEqual(terminal.output.count(b"\x1b[?1049h"), 1)
        self.assertEqual(termios.tcgetattr(terminal.side), terminal.before)

    def test_every_key_of_the_help(self):
        terminal = self.terminal(GEMM)
        screen = terminal.until_text("GemmWgmma #0, CTA 0,0,0")
        self.assertEqual(len(screen), 30)
        self.assertLessEqual(max(map(len, screen)), 100)
        terminal.press(b"?")
        help_text = "\n".join(terminal.until_text("any key: back"))
        terminal.press(b"x")
        terminal.until_text("CTA 0,0,0")
        tried = []

        def press(keys, *expected):
            """Presses keys that the help names."""
            for key in keys:
                tried.append(key)
                terminal.press({"left": b"\x1b[D", "right": b"\x1b[C", "up": b"\x1b[A", "down": b"\x1b[B",
                                "Page Up": b"\x1b[5~", "Page Down": b"\x1b[6~", "Home": b"\x1b[H",
                                "End": b"\x1b[F"}.get(key, key.encode()))
            for text in expected:
                terminal.until_text(text)

        cursor = lambda lines: next(line.index("^") for line in lines if line.strip() == "^")  # noqa: E731
        at = cursor(terminal.screen())
        press(["right", "l", "right"])
        terminal.until(lambda lines: cursor(lines) == at + 3)
        press(["left", "h"])
        terminal.until(lambda lines: cursor(lines) == at + 1)
        press(["down", "j"], "warp  2")
        terminal.until(lambda lines: any(line.startswith("warp  2 (mma, full-wait): ") for line in lines))
        press(["up", "k", "Page Down"])
        terminal.until(lambda lines: any(line.startswith("warp 10: ") for line in lines))
        press(["Page Up"])
        terminal.until(lambda lines: any(line.startswith("warp  0 (mma, full-wait): ") for line in lines))
        press(["Home"])
        terminal.until(lambda lines: cursor(lines) == at)
        press(["End"])
        terminal.until(lambda lines: cursor(lines) > 90)
        whole = [line for line in terminal.screen() if "|0" in line]
        press(["+", "w", "-", "s", "+"])
        terminal.until(lambda lines: not any("|0 " in line for line in lines))
        press(["a", "d", "0"])
        terminal.until(lambda lines: [line for line in lines if "|0" in line] == whole)
        press(["n"], "CTA 1,0,0 on")
        press(["p"], "CTA 0,0,0 on")
        press(["]"], "this is the last launch")
        press(["["], "this is the first launch")
        press(["t", "t", "m", "m"])
        press(["/"])
        terminal.press(b"epilogue\r")
        terminal.until(lambda lines: any("epilogue: " in line for line in lines))
        press(["q"])
        self.assertEqual(terminal.end(), 0)
        self.assert_restored(terminal)
        # Nothing that the help names was left out.
        named = set(re.findall(r"left|right|up|down|Page Up|Page Down|Home|End", help_text))
        named |= {key for line in help_text.splitlines() for key in re.findall(r"(?<!\S)(\S)(?=,|  )", line[:21])}
        self.assertEqual(named - set(tried) - {"?"}, set())

    def test_ends_in_every_way_with_the_terminal_as_it_was(self):
        for how, code in ((b"q", 0), (b"\x03", 0), (b"\x1b", 0), (signal.SIGTERM, -signal.SIGTERM),
                          (signal.SIGINT, -signal.SIGINT), (signal.SIGHUP, -signal.SIGHUP)):
            with self.subTest(how=how):
                terminal = self.terminal(GEMM)
                terminal.until_text("GemmWgmma")
                if isinstance(how, bytes):
                    terminal.press(how)
                else:
                    terminal.process.send_signal(how)
                self.assertEqual(terminal.end(), code)
                self.assert_restored(terminal)

    def test_follows_the_terminal_s_size(self):
        terminal = self.terminal(GEMM, size=(60, 12))
        self.assertEqual(len(terminal.until_text("GemmWgmma")), 12)
        terminal.resize(30, 5)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.until_text("too small")
        terminal.resize(140, 40)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.until(lambda lines: len(lines) == 40 and "GemmWgmma" in lines[0])
        terminal.press(b"q")
        self.assertEqual(terminal.end(), 0)

    def test_text_on_a_terminal_if_asked(self):
        terminal = self.terminal(GEMM, "--plain")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"\x1b[?1049h", terminal.output)
        self.assertIn(b"\x1b[30;48;2;", terminal.output)


if __name__ == "__main__":
    unittest.main()
