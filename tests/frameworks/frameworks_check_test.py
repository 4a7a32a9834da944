"""The checker says no: to wrong counts, to output that differs, to what does not end well; and yes to what is right.
Its programs run on the software device."""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import unittest
from unittest import mock

import frameworks_check
from frameworks_check import Script

TREE = os.environ["IKET_TREE"]
SAXPY = ["{tree}/bin/examples/saxpy_driver_marked", "--n", "4096", "--iterations", "2", "--warmup", "0"]
RIGHT = frameworks_check.TWO_OF_SAXPY


def shell(text, **more):
    return Script("shell", ["sh", "-c", text.replace("SAXPY", " ".join(SAXPY) + " >/dev/null")], **more)


class FrameworksCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.check = frameworks_check.Check(argparse.Namespace(tree=TREE, out=self.folder, device="sim"))

    def outcome(self, script):
        why, wrong, held = self.check.run(script)
        return why, wrong, (held.launches, held.events)

    def test_right(self):
        self.assertEqual(self.outcome(Script("nvcc", SAXPY, stated=RIGHT)), ("", [], RIGHT))
        said = "ok: {} launches, {} events".format(*RIGHT)
        self.assertEqual(self.outcome(shell(f"SAXPY; echo {said}")), ("", [], RIGHT))

    def test_processes_and_ranks_are_added_up(self):
        twice = (2 * RIGHT[0], 2 * RIGHT[1])
        self.assertEqual(self.outcome(shell("SAXPY; SAXPY", processes=2, stated=twice)), ("", [], twice))
        with open(os.path.join(self.folder, "ranks.sh"), "w", encoding="utf-8") as file:
            file.write('for RANK in 0 1; do export RANK; "$@" ' + " ".join(SAXPY).replace("{tree}", TREE) + "; done\n")
        script = Script("ranks", ["sh", f"{self.folder}/ranks.sh"], processes=2, ranked=True, stated=twice)
        self.assertEqual(self.outcome(script), ("", [], twice))
        self.assertEqual(sorted(name for name in os.listdir(f"{self.folder}/ranks") if name.startswith("iket")),
                         ["iket.0", "iket.1"])

    def test_wrong_counts(self):
        for stated in ((3, RIGHT[1]), (2, RIGHT[1] + 1), (0, 0)):
            with self.subTest(stated=stated):
                _, wrong, _ = self.outcome(Script("nvcc", SAXPY, stated=stated))
                self.assertTrue(any(f"not {number}" in line for number in stated for line in wrong), wrong)
        self.assertEqual(self.outcome(Script("nvcc", SAXPY, processes=2, stated=RIGHT))[1], ["1 captures, not 2"])
        self.assertIn("it does not say how many", self.outcome(shell("SAXPY"))[1][0])

    def test_different_output(self):
        _, wrong, _ = self.outcome(shell("SAXPY; echo ${IKET_SOCKET:+with}", stated=RIGHT))
        self.assertIn("standard output differs", "".join(wrong))

    def test_bad_ends(self):
        _, wrong, _ = self.outcome(shell("SAXPY; exit 3", stated=RIGHT))
        self.assertIn("without iket it ends with 3", wrong[0])
        self.assertIn("with iket it ends with 3", wrong[1])
        # Only beside iket it cannot run: that is no reason not to.
        _, wrong, _ = self.outcome(shell("SAXPY; exit ${IKET_SOCKET:+77}", stated=RIGHT))
        self.assertIn("with iket it ends with 77", "".join(wrong))

    def test_missing(self):
        self.assertEqual(self.outcome(shell("echo no Python module jax; exit 77"))[0], "no Python module jax")
        with mock.patch.object(frameworks_check, "ncu_program", lambda: ""):
            self.assertEqual(self.outcome(Script("ncu", ["ncu"]))[0], "no program ncu")

    def test_losses_are_faults(self):
        counters = dict.fromkeys(frameworks_check.FAULTS, 0)
        report = {"trust": {"launches": {"all": 2, "complete": 1}, "events": 9, "counters": counters,
                            "refused": [{"kernel": "K", "reason": "no"}], "damage": ""}}
        counters["records_lost"] = 5
        held = frameworks_check.Held()
        held.add(report)
        run = frameworks_check.execute(["echo", "ok: 2 launches, 9 events"], self.folder, "echo", dict(os.environ))
        self.assertEqual(frameworks_check.compare(Script("x", []), run, run, held),
                         ["1 launches complete, not 2", "5 records_lost", "refused: K: no"])

    def call(self, *words):
        said = io.StringIO()
        arguments = ["check", "--tree", TREE, "--out", self.folder, "--device", "sim", *words]
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(said):
            with self.assertRaises(SystemExit) as ended:
                frameworks_check.main()
        return ended.exception.code, said.getvalue()

    def test_whole(self):
        right, wrong = Script("right", SAXPY, stated=RIGHT), Script("wrong", SAXPY, stated=(2, 9))
        absent = Script("absent", ["sh", "-c", "echo nothing here; exit 77"])
        for scripts, code in (([right, absent], 0), ([right, wrong], 1), ([absent], 1)):
            with mock.patch.object(frameworks_check, "SCRIPTS", scripts):
                self.assertEqual(self.call()[0], code)
        with mock.patch.object(frameworks_check, "SCRIPTS", [right, absent]):
            _, said = self.call()
        self.assertIn("not run: nothing here", said)
        self.assertIn("1 of 1 pass, 1 not run", said)
        with open(os.path.join(self.folder, "summary.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), said)

    def test_programs_of_the_table(self):
        """Those that the software device runs state what they make."""
        for script in frameworks_check.SCRIPTS:
            if script.name in ("contexts", "threads"):
                self.assertEqual(self.outcome(script)[:2], ("", []), script.name)


if __name__ == "__main__":
    unittest.main()
