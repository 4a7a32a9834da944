"""What a program says of its own recording: iket/session.h and NVTX ranges. On the software device, or on a GPU with
IKET_TEST_DEVICE=gpu."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

IKET = os.environ["IKET"]
# With a stand-in for NVTX, and with NVTX itself where the toolkit has it.
PROGRAMS = os.environ["IKET_SIM_WINDOWS"].split(":")
IMAGE = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "marked.cubin")
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")
WARPS = 4  # of each launch


class Windows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_program(self, *command, **variables):
        if DEVICE == "sim":
            variables["LD_LIBRARY_PATH"] = os.environ["IKET_SIM"]
        return subprocess.run(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, check=False, text=True)

    def profile(self, *words, options=(), program=PROGRAMS[0], export="none"):
        done = self.run_program(IKET, "profile", "--device", DEVICE, "--export", export, "-o", self.path("out"),
                                *options, "--", program, IMAGE, *words)
        self.assertTrue(done.stdout.endswith("done, ok\n"), done.stdout + done.stderr)
        return done

    def captures(self, pattern="*"):
        return sorted(glob.glob(self.path(f"out/{pattern}.iketcap")))

    def final(self):
        (capture,) = [path for path in self.captures() if "snapshot" not in path]
        return capture

    def json(self, command, capture):
        done = self.run_program(IKET, command, "--json", capture)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_recorded(self, done, launches, left_out):
        """The number of launches that were recorded, whole, and of those that were not."""
        if launches == 0:
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn(f"{left_out} launches were made, all outside of what", done.stderr)
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        trust = self.json("report", self.final())["trust"]
        self.assertEqual((trust["launches"]["all"], trust["launches"]["complete"]), (launches, launches))
        self.assertEqual(trust["warps"], launches * WARPS)
        self.assertEqual(trust["counters"]["records_lost"], 0)
        if left_out:
            self.assertRegex(done.stderr, rf"the host made {left_out} more that were left out")
        else:
            self.assertNotIn("left out", done.stderr)

    def test_the_program_starts_and_stops(self):
        for options, words, launches, left_out in (
            ((), "launch stop launch launch start launch", 2, 2),
            (("--paused",), "launch start launch stop launch", 1, 2),
            (("--paused",), "launch launch", 0, 2),
            # They do not nest.
            (("--paused",), "start start launch stop launch", 1, 1),
            (("--paused",), "window,launch,launch launch window,launch", 3, 1),
            ((), "window,launch launch", 1, 1),
            ((), "stop launch", 0, 1),
            # Launches are counted in the window and out of it.
            (("--paused", "--launch", "1:3"), "launch start launch launch launch", 2, 2),
            (("--paused",), "thread,start,launch launch thread,stop launch", 2, 1),
            # Nobody waits, and nothing is told to the GPU, where nothing is launched meanwhile.
            ((), "stop start stop start launch", 1, 0),
        ):
            with self.subTest(options=options, words=words):
                self.assert_recorded(self.profile("load", *words.split(), options=options), launches, left_out)

    def test_a_context_that_comes_in_a_pause(self):
        # Its rings are not to be recorded to when the image is made ready.
        done = self.profile("load", "launch", "stop", "launch", "sync", "reset", "load", "launch", "start", "launch")
        self.assert_recorded(done, 2, 2)

    def test_ranges(self):
        for words, launches, left_out in (
            ("launch push=step launch pop launch", 1, 2),
            ("push=other launch pop push=step launch push=inner launch pop launch pop launch", 3, 2),
            ("push=step push=step launch pop launch pop launch", 2, 1),
            ("push-plain=step launch pop launch", 1, 1),
            ("push-wide=step launch pop launch push-wide=ste launch push-wide=steps launch", 1, 3),
            ("begin=step launch end launch begin=stepp launch end", 1, 2),
            ("begin-wide=step launch end launch", 1, 1),
            # In any domain, each of which has a stack of its own.
            ("domain=a in-push=step push=x launch pop launch in-pop launch", 2, 1),
            ("domain=a in-push=step launch domain=b in-push=x domain=a in-pop launch domain=b in-pop launch", 1, 2),
            ("domain=a push-registered=step launch in-pop push-registered=other launch in-pop", 1, 1),
            ("domain=a in-begin=step launch in-end launch", 1, 1),
            # Stacks are of threads, windows of the process.
            ("push=step thread,pop,launch launch pop launch", 2, 1),
            ("thread,begin=step launch end launch", 1, 1),
            # Pops of nothing do nothing.
            ("pop in-pop end launch push=step launch pop pop launch", 1, 2),
            ("launch", 0, 1),
        ):
            for program in PROGRAMS:
                with self.subTest(words=words, program=os.path.basename(program)):
                    done = self.profile("load", *words.split(), options=("--nvtx", "step"), program=program)
                    self.assert_recorded(done, launches, left_out)

    def test_names_beyond_ascii(self):
        for name in ("prüfen", "步", "🚀 go"):
            for how in ("push", "push-wide", "push-plain"):
                with self.subTest(name=name, how=how):
                    done = self.profile("load", "launch", f"{how}={name}", "launch", options=("--nvtx", name))
                    self.assert_recorded(done, 1, 1)

    def test_ranges_deeper_than_windows_go(self):
        words = ["load", *["push=x"] * 70, "push=step", "launch", *["pop"] * 70, "launch", "pop", "launch",
                 "push=step", "launch"]
        done = self.profile(*words, options=("--nvtx", "step"))
        self.assert_recorded(done, 1, 3)
        self.assertEqual(done.stderr.count("nested too deep"), 1)

    def test_a_window_is_all_that_was_asked_for(self):
        done = self.profile("load", "launch", "push=step", "launch", "start", "launch", "pop", "launch",
                            options=("--nvtx", "step", "--paused"))
        self.assert_recorded(done, 1, 3)

    def test_nvtx_has_one_library_only(self):
        command = (IKET, "profile", "--device", DEVICE, "-o", self.path("out"), "--nvtx", "x", "--", PROGRAMS[0], IMAGE)
        done = self.run_program(*command, NVTX_INJECTION64_PATH="/opt/other.so")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("NVTX_INJECTION64_PATH is set to /opt/other.so", done.stderr)
        self.assertFalse(os.path.exists(self.path("out")))
        # Another's is left alone where ranges are not asked for.
        self.assertEqual(self.run_program(PROGRAMS[0], IMAGE, "push=x", NVTX_INJECTION64_PATH="/none.so").returncode, 0)

    def test_marks(self):
        done = self.profile("mark=early", "load", "mark=loaded", "launch", "sync", "mark=between", "launch", "sync",
                            "mark=late", export="pftrace")
        self.assert_recorded(done, 2, 0)
        notes = [note for note in self.json("info", self.final())["notes"] if note["severity"] == "host mark"]
        self.assertEqual([note["text"] for note in notes], ["early", "loaded", "between", "late"])
        self.assertEqual(notes, sorted(notes, key=lambda note: note["time_ns"]))
        text = self.run_program(IKET, "info", self.final()).stdout
        self.assertRegex(text, r"(?m)^  host mark +early, at -0\.\d+ s$")
        self.assertRegex(text, r"(?m)^  host mark +late, at \+\d+\.\d+ s$")
        (trace,) = glob.glob(self.path("out/*.pftrace"))
        with open(trace, "rb") as file:
            content = file.read()
        for name in (b"host", b"early", b"between", b"late"):
            self.assertIn(name, content)
        self.assertEqual(self.run_program(IKET, "check", trace, self.final()).returncode, 0)

    def test_many_marks(self):
        self.profile("load", "launch", *[f"mark={i}" for i in range(50)])
        self.assertRegex(self.run_program(IKET, "info", self.final()).stdout,
                         r"(?m)^  host mark +19, at .*\n  host mark +and 30 more; --all shows them$")
        self.assertRegex(self.run_program(IKET, "info", "--all", self.final()).stdout, r"(?m)^  host mark +49, at ")

    def test_a_snapshot(self):
        done = self.profile("load", "launch", "sync", "mark=before", "snapshot", "mark=after", "launch")
        path = self.captures("*snapshot1")[0]
        self.assertIn(f"snapshot {path}\n", done.stdout)
        self.assertEqual(self.json("report", path)["trust"]["launches"]["complete"], 1)
        self.assertEqual([note["text"] for note in self.json("info", path)["notes"]], ["before"])
        self.assert_recorded(done, 2, 0)

    def test_a_snapshot_of_nothing(self):
        # A process without rings of its own does not get those of others.
        done = self.run_program(IKET, "profile", "--device", DEVICE, "-o", self.path("out"), "--", "sh", "-c",
                                f"'{PROGRAMS[0]}' '{IMAGE}' load launch sync & '{PROGRAMS[0]}' '{IMAGE}' snapshot flush; wait")
        self.assertIn("snapshot \nflushed 0\n", done.stdout)
        self.assertEqual(self.captures("*snapshot*"), [])

    def test_a_flush_keeps_what_is_written_over(self):
        ring = ("--ring", "4K")
        words = ("load", "launch", "sync", "flush", "many", "sync")
        worked = {}
        for how in ("with", "without"):
            done = self.profile(*(word for word in words if how == "with" or word != "flush"), options=ring)
            self.assertEqual("flushed 1\n" in done.stdout, how == "with")
            self.assertEqual(self.run_program(IKET, "check", self.final()).returncode, 0)
            report = self.json("report", self.final())
            worked[how] = sum(mark["n"] for mark in report["marks"] if mark["name"] == "worked")
            counters = report["trust"]["counters"]
            self.assertEqual(counters["records_written"], 4 * (100_002 + 3))
            self.assertEqual(counters["records_written"], counters["records_kept"] + counters["records_lost"])
            self.assertEqual(counters["suspect_rings"], 0)
        self.assertEqual(worked["with"], WARPS)
        # Slots are taken anew by each launch: the second one wrote over the first. A GPU may take others.
        if DEVICE == "sim":
            self.assertEqual(worked["without"], 0)

    def test_flushes_among_launches_lose_nothing(self):
        done = self.profile("load", "launch", "sync", "flush", "flush", "launch", "sync", "flush", "stop", "launch",
                            "start", "launch")
        self.assertEqual(done.stdout.count("flushed 1\n"), 3)
        self.assert_recorded(done, 3, 1)

    def test_not_traced_all_does_nothing(self):
        words = ("attached", "start", "window,mark=x", "stop", "mark=y", "snapshot", "flush", "push=a", "pop",
                 "domain=d", "in-push=a", "in-pop")
        for program in PROGRAMS:
            done = self.run_program(program, IMAGE, *words)
            self.assertEqual((done.stdout, done.stderr), ("attached 0\nsnapshot \nflushed 0\ndone, ok\n", ""))
            # Traced and without CUDA, it is not disturbed, and leaves no file.
            done = self.run_program(IKET, "profile", "--device", DEVICE, "-o", self.path("out"), "--nvtx", "a", "--",
                                    program, IMAGE, *words)
            self.assertEqual(done.stdout, "attached 1\nsnapshot \nflushed 0\ndone, ok\n")
            self.assertEqual(self.captures(), [])


if __name__ == "__main__":
    unittest.main()
