"""guest_matrix.py can say no: with a stand-in for iket that reports what the test wants."""

import os
import subprocess
import sys
import tempfile
import unittest

MATRIX = os.path.join(os.path.dirname(os.path.realpath(__file__)), "guest_matrix.py")

# Runs the program as `iket profile` would, with IKET_STANDIN around it.
STANDIN = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
IKET_STANDIN=1 "$@"
code=$?
cat "$(dirname "$0")/report" >&2
[ -e "$(dirname "$0")/code" ] && exit "$(cat "$(dirname "$0")/code")"
exit $code
"""
REPORT = '{{"events_kept":{events},"records_lost":{lost},"refused":[{refused}]}}\n'
REFUSED = '{"kernel":"k","reason":"it uses one of UR0..UR3","times":1}'


class GuestMatrix(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = folder.name
        os.makedirs(os.path.join(self.tree, "bin/tests/guest"))
        self.script("bin/iket", STANDIN)

    def script(self, name, text):
        path = os.path.join(self.tree, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def run_guest(self, expected, program="echo fine", events=5, lost=0, refused="", code=None,
                  needs=""):
        self.script("bin/tests/guest/guest", f"#!/bin/sh\n{program}\n")
        self.script("bin/report", REPORT.format(events=events, lost=lost, refused=refused))
        if code is not None:
            self.script("bin/code", f"{code}\n")
        self.script("bin/tests/guest/programs.txt", f"# a row\nrow | guest | {expected} | {needs}\n")
        done = subprocess.run([sys.executable, MATRIX, "--tree", self.tree, "--out",
                               os.path.join(self.tree, "out"), "--device", "sim"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              text=True)
        return done.returncode, done.stdout

    def assert_passes(self, *arguments, **named):
        code, said = self.run_guest(*arguments, **named)
        self.assertEqual(code, 0, said)
        self.assertIn("1 of 1 guests pass", said)

    def assert_fails(self, reason, *arguments, **named):
        code, said = self.run_guest(*arguments, **named)
        self.assertEqual(code, 1, said)
        self.assertIn(reason, said)
        self.assertIn("FAILED: row", said)

    def test_a_guest_with_its_events_passes(self):
        self.assert_passes("5")

    def test_events_are_counted_exactly(self):
        self.assert_fails("5 events, not 6", "6")
        self.assert_fails("5 events, not 4", "4")

    def test_lost_records_are_a_fault(self):
        self.assert_fails("2 records lost", "5", lost=2)

    def test_output_must_be_the_same(self):
        self.assert_fails("standard output differs", "5", program="echo $IKET_STANDIN")

    def test_exit_code_must_be_the_same(self):
        self.assert_fails("exit code 9, not 0", "5", code=9)

    def test_a_guest_that_fails_both_times_is_no_success(self):
        self.assert_fails("without iket it ends with 1", "any", program="exit 1")
        self.assert_passes("5, exit 3", program="exit 3")

    def test_signals_are_said_as_a_shell_does(self):
        self.assert_passes("5, exit 134", program="kill -ABRT $$")

    def test_refusals(self):
        self.assert_fails("refused: k: it uses one of", "5", refused=REFUSED)
        self.assert_passes("5, refused: uses one of UR0..UR3", refused=REFUSED)
        self.assert_fails("no refusal says", "5, refused: something else", refused=REFUSED)

    def test_nothing_recorded_has_its_exit_code(self):
        self.assert_passes("none", events=0, code=4)
        self.assert_fails("exit code 0, not 4", "none", events=0, code=0)

    def test_what_cannot_run_is_said_and_nothing_run_is_no_success(self):
        for needs, program, why in (("gpu", "echo", "needs a GPU"),
                                    ("no_such_module", "echo", "no Python module no_such_module"),
                                    ("", "echo no NVRTC; exit 77", "no NVRTC")):
            code, said = self.run_guest("5", program=program, needs=needs)
            self.assertEqual(code, 1, said)
            self.assertIn(f"not run, {why}: row", said)


if __name__ == "__main__":
    unittest.main()
