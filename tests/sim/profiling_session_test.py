"""Programs that profile themselves: iket/iket_profiling_session.h. On the software device, or on a GPU with
IKET_TEST_DEVICE=gpu."""

import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

IKET, PROGRAM, LIBRARY = (os.environ[name] for name in ("IKET", "IKET_SIM_SELF_PROFILE", "IKET_SESSION_LIBRARY"))
BEHIND, OPEN, CPP = (f"{PROGRAM}_{form}" for form in ("behind", "open", "cpp"))
IMAGE = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "marked.cubin")
PLAIN = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "plain.cubin")
FOREIGN = os.path.join(os.environ["IKET_FOREIGN_DATA"], "cpp")
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")
WARPS = 4  # of each launch
GOOD, INVALID, NOT_SUPPORTED, NOT_INSTRUMENTED, STATE, DUPLICATE, IO, INTERNAL = 0, 1, 2, 4, 8, 9, 13, 14


class ProfilingSession(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.temporary = self.path("tmp")
        os.mkdir(self.temporary)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *command, libraries=(os.path.dirname(LIBRARY),), **variables):
        paths = [*libraries, *([os.environ["IKET_SIM"]] if DEVICE == "sim" else [])]
        if "LD_LIBRARY_PATH" in os.environ:
            paths.append(os.environ["LD_LIBRARY_PATH"])
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(paths), "TMPDIR": self.temporary, **variables}
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              check=False, text=True, cwd=self.folder)

    def run_words(self, text, *, program=PROGRAM, image=IMAGE, kernel="Work", says=None, **variables):
        """Runs a program that must end well; `says` is what must stand on standard error, or None: nothing."""
        done = self.start(program, image, kernel, *text.split(), **variables)
        self.assertTrue(done.stdout.endswith("done, ok\n"), done.stdout + done.stderr)
        if says is None:
            self.assertEqual(done.stderr, "")
        else:
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(os.listdir(self.temporary), [])
        return done.stdout.splitlines()[:-1]

    def trace(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            trace = json.load(file)
        self.assertEqual(set(trace), {"graphLaunches", "launches", "locationTable", "meta", "stringTable"})
        self.assertEqual(trace["meta"]["version"], 1)
        return trace

    def assert_trace(self, name, launches, marks=WARPS, values=(0, 32, 64, 96)):
        """The number of launches of a trace, each of all warps with so many marks in all, and these payloads."""
        trace = self.trace(name)
        self.assertEqual([len(launch["markers"]) for launch in trace["launches"]], [marks] * launches)
        self.assertEqual([len(launch["warpLifetimes"]) for launch in trace["launches"]], [WARPS] * launches)
        if marks == WARPS and values is not None:
            for launch in trace["launches"]:
                self.assertEqual([mark["payloadVal"] for mark in launch["markers"]], list(values))
        return trace

    # --- programs ----------------------------------------------------------------------------------

    def test_a_program_in_c(self):
        said = self.run_words("version create load launch start launch=3 stop launch save=a.json save=b.json destroy")
        self.assertEqual(said, ["version 0 1.0", "create 0", "start 0", "stop 0", "save 0", "save 0", "destroy 0"])
        trace = self.assert_trace("a.json", 3)
        self.assertEqual(trace["stringTable"][trace["launches"][0]["markers"][0]["markerNameIdx"]], "worked")
        self.assertEqual(trace, self.trace("b.json"))
        self.assertEqual(self.start(IKET, "check", self.path("a.json")).returncode, 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.json", "b.json", "tmp"])

    def test_a_program_in_cpp(self):
        done = self.start(CPP, IMAGE, "Work", "c.json")
        self.assertEqual((done.stdout, done.stderr), ("done, ok\n", ""))
        self.assert_trace("c.json", 3)

    def test_however_the_driver_is_reached(self):
        words = "create load launch start launch stop launch save=a.json"
        opened = f"open={LIBRARY} "
        for how, program, text, variables in (
                ("linked, looked up", PROGRAM, "look-up " + words, {}),
                ("linked behind the driver", BEHIND, words, {}),
                ("linked behind the driver, looked up", BEHIND, "look-up " + words, {}),
                ("linked behind the driver, bound at once", BEHIND, words, {"LD_BIND_NOW": "1"}),
                ("opened", OPEN, opened + words, {}),
                ("opened, bound at once", OPEN, opened + words, {"LD_BIND_NOW": "1"}),
                ("opened, looked up", OPEN, opened + "look-up " + words, {}),
                ("preloaded", OPEN, opened + "take " + words, {"LD_PRELOAD": LIBRARY})):
            with self.subTest(how):
                self.run_words(text, program=program, **variables)
                self.assert_trace("a.json", 1)
                os.remove(self.path("a.json"))

    def test_marks_of_another_front_end(self):
        # As run-iket has traced it, from the file where its events are.
        with open(f"{FOREIGN}.json", encoding="utf-8") as file:
            expected = json.load(file)
        self.run_words("create load start launch stop save=a.json", image=f"{FOREIGN}.cubin", kernel=expected["kernel"])
        trace = self.assert_trace("a.json", 1, marks=sum(len(warp["markers"]) for warp in expected["events"]), values=None)
        (launch,) = trace["launches"]
        names = [trace["stringTable"][one["rangeNameIdx"]] for one in launch["ranges"]]
        self.assertEqual(names, [name for warp in expected["events"] for name, *_ in warp["ranges"]])

    def test_opened_too_late(self):
        said = self.run_words(f"init open={LIBRARY} create load start launch stop save=a.json", program=OPEN,
                              says="not started: CUDA was in use before this library was loaded: link")
        self.assertEqual(said, ["create 0", f"start {NOT_INSTRUMENTED}", f"stop {DUPLICATE}", "save 0"])
        self.assert_trace("a.json", 0)
        # What took the driver's functions before is not seen, and nobody says that it was recorded.
        said = self.run_words(f"take open={LIBRARY} create load start launch stop save=a.json", program=OPEN,
                              says="nothing was recorded: no code with marks was loaded where this library could see")
        self.assert_trace("a.json", 0)

    def test_loaded_by_the_driver(self):
        # Which is in the middle of cuInit() then; here it is opened in its place.
        said = self.run_words(f"open={LIBRARY} create start", program=OPEN, CUDA_INJECTION64_PATH=LIBRARY,
                              says="not started: CUDA_INJECTION64_PATH names this library")
        self.assertEqual(said, ["create 0", f"start {NOT_INSTRUMENTED}"])

    def test_no_marks_in_the_program(self):
        said = self.run_words("create start load launch stop save=a.json save=a.iketcap", image=PLAIN, IKET_QUIET="1")
        self.assertEqual(said, ["create 0", "start 0", "stop 0", "save 0", f"save {IO}"])
        self.assert_trace("a.json", 0)
        self.assertFalse(os.path.exists(self.path("a.iketcap")))
        # Marks, and none of them in the session.
        self.run_words("create load launch start stop launch save=a.json")
        self.assert_trace("a.json", 0)

    # --- times -------------------------------------------------------------------------------------

    def test_a_session_adds_up_until_it_is_cleared(self):
        self.run_words("create load start launch stop launch=2 start launch=3 stop launch save=a.json clear "
                       "save=empty.json start launch=2 stop save=b.json clear start launch stop save=c.json")
        for name, launches in (("a", 4), ("empty", 0), ("b", 2), ("c", 1)):
            self.assert_trace(f"{name}.json", launches)

    def test_each_session_has_its_own(self):
        self.run_words("create use=1 create load start launch stop use=0 start launch=2 stop use=1 start launch stop "
                       "save=b.json clear use=0 save=a.json use=1 destroy use=0 start launch stop save=c.json")
        for name, launches in (("a", 2), ("b", 2), ("c", 3)):
            self.assert_trace(f"{name}.json", launches)

    def test_stop_waits_for_what_was_launched(self):
        # 400,000 marks of each launch, of which rings keep the newest; none of the first session's in the second.
        self.run_words("create load start many stop save=a.json clear start launch stop save=b.json")
        (launch,) = self.trace("a.json")["launches"]
        self.assertEqual(len(launch["warpLifetimes"]), WARPS)
        kept = len(launch["markers"])
        counters = self.trace("a.json")["meta"]["iket"]["counters"]
        self.assertGreater(kept, 0)
        self.assertEqual(max(mark["payloadVal"] for mark in launch["markers"]), 99999)
        self.assertEqual(counters["records_written"], counters["records_kept"] + counters["records_lost"])
        self.assertEqual(counters["records_written"], WARPS * 100_002)
        self.assert_trace("b.json", 1)

    def test_what_was_overwritten_by_a_later_session_is_kept(self):
        self.run_words("create load start launch stop start many stop save=a.json", IKET_RING_BYTES="4096")
        first, second = self.trace("a.json")["launches"]
        self.assertEqual([mark["payloadVal"] for mark in first["markers"]], [0, 32, 64, 96])
        self.assertEqual(max(mark["payloadVal"] for mark in second["markers"]), 99999)

    def test_code_and_contexts_that_end_meanwhile(self):
        self.run_words("create load start launch sync unload load launch sync end load launch stop save=a.json")
        self.assert_trace("a.json", 3)

    def test_code_loaded_in_the_session(self):
        self.run_words("create start load launch=2 stop save=a.json")
        self.assert_trace("a.json", 2)

    def test_a_kernel_that_faults(self):
        words = "create load start launch stop save=a.json".split()
        done = self.start(PROGRAM, IMAGE, "Trap", *words)
        self.assertEqual(done.stdout, f"create 0\nstart 0\nstop {INTERNAL}\nsave 0\ndone, ok\n")
        self.assertIn("what was recorded cannot be read", done.stderr)
        self.assert_trace("a.json", 0)
        # Rings in the host's memory outlive it.
        done = self.start(PROGRAM, IMAGE, "Trap", *words, IKET_FLIGHT="1")
        self.assertEqual(done.stdout, "create 0\nstart 0\nstop 0\nsave 0\ndone, ok\n")
        trace = self.trace("a.json")
        (launch,) = trace["launches"]
        self.assertEqual({trace["stringTable"][mark["markerNameIdx"]] for mark in launch["markers"]}, {"about to trap"})

    # --- codes -------------------------------------------------------------------------------------

    def test_the_wrong_order(self):
        said = self.run_words("start create use=1 create use=0 stop load start start use=1 start stop usual clear save=b.json "
                              "use=0 usual clear save=a.json launch stop stop destroy stop destroy use=1 start destroy")
        self.assertEqual(said, [
            f"start {INVALID}", "create 0", "create 0", f"stop {DUPLICATE}", "start 0", f"start {DUPLICATE}",
            # The other one may do everything but start.
            f"start {DUPLICATE}", f"stop {DUPLICATE}", "usual 0", "clear 0", "save 0",
            f"usual {STATE}", f"clear {STATE}", f"save {STATE}",
            "stop 0", f"stop {DUPLICATE}", "destroy 0", f"stop {INVALID}", f"destroy {INVALID}", "start 0", "destroy 0"])
        self.assert_trace("b.json", 0)
        self.assertFalse(os.path.exists(self.path("a.json")))

    def test_a_session_that_is_destroyed_is_stopped(self):
        said = self.run_words("create load start launch destroy create start launch=2 stop save=a.json")
        self.assertEqual(said, ["create 0", "start 0", "destroy 0", "create 0", "start 0", "stop 0", "save 0"])
        self.assert_trace("a.json", 2)

    def test_two_threads(self):
        said = self.run_words("create use=1 create load race launch start launch stop save=a.json")
        self.assertEqual(said, ["create 0", "create 0", "race ok", "start 0", "stop 0", "save 0"])
        self.assert_trace("a.json", 1)

    def test_a_child_has_no_session(self):
        said = self.run_words("create load start launch fork stop fork save=child.json fork create stop save=a.json")
        self.assertEqual(said, ["create 0", "start 0", f"stop {STATE}", f"save {STATE}", f"create {STATE}", "stop 0",
                                "save 0"])
        self.assert_trace("a.json", 1)

    def test_under_iket_profile_it_steps_aside(self):
        done = self.start(IKET, "profile", "--device", DEVICE, "--export", "none", "-o", self.path("out"), "--",
                          PROGRAM, IMAGE, "Work", *"create load launch start launch sync stop save=a.json".split())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"start {STATE}\nstop {DUPLICATE}\nsave 0\n", done.stdout)
        self.assertIn("not started: this process is traced by iket profile", done.stderr)
        (capture,) = glob.glob(self.path("out/*.iketcap"))
        report = json.loads(self.start(IKET, "report", "--json", capture).stdout)
        self.assertEqual(report["trust"]["launches"]["complete"], 2)
        self.assert_trace("a.json", 0)

    # --- options -----------------------------------------------------------------------------------

    def test_one_cluster(self):
        self.run_words("create cluster=1,0,0 load start launch stop save=a.json")
        (launch,) = self.trace("a.json")["launches"]
        self.assertEqual([mark["payloadVal"] for mark in launch["markers"]], [64, 96])

    def test_lifetimes_only(self):
        self.run_words("create flags=4 load launch start launch stop save=a.json")
        self.assert_trace("a.json", 1, marks=0)
        # Of kernels without a mark, too; and with the readback that ours always does.
        self.run_words("create flags=6 load launch start launch stop save=a.json", image=PLAIN)
        self.assert_trace("a.json", 1, marks=0)

    def test_what_is_chosen_when_code_is_loaded_cannot_be_chosen_later(self):
        said = self.run_words("create load cluster=1,0,0 start usual start launch stop save=a.json",
                              says="not started: a cluster and lifetimes are chosen when code is loaded")
        self.assertEqual(said, ["create 0", "cluster=1,0,0 0", f"start {NOT_SUPPORTED}", "usual 0", "start 0", "stop 0",
                                "save 0"])
        self.assert_trace("a.json", 1)

    def test_contexts(self):
        said = self.run_words("create load own-context start launch stop save=a.json clear other-context start launch "
                              "stop save=b.json")
        self.assertEqual(said, ["create 0", "own-context 0", "start 0", "stop 0", "save 0", "clear 0", "other-context 0",
                                "start 0", "stop 0", "save 0"])
        self.assert_trace("a.json", 1)
        self.assert_trace("b.json", 0)

    def test_options_of_wrong_size(self):
        said = self.run_words("create size=0 size=55 size=1000 start stop", IKET_QUIET="1")
        self.assertEqual(said, ["create 0", f"size=0 {INVALID}", f"size=55 {INVALID}", "size=1000 0", "start 0", "stop 0"])

    def test_what_has_no_effect_is_said_once(self):
        self.run_words("create timestamps=17 timestamps=18 load start launch stop save=a.json",
                       says="max_ts_per_warp and device_buffer_size have no effect")
        self.assert_trace("a.json", 1)
        self.run_words("create log=0 timestamps=17")
        done = self.start(PROGRAM, IMAGE, "Work", *"create log=2 load start launch stop save=a.json".split())
        self.assertEqual(done.stderr, "".join(f"iket: profiling session: {text}\n" for text in
                                              ("started", "stopped", "trace written to a.json")))

    def test_a_selection_of_the_environment(self):
        self.run_words("create load start launch stop save=a.json", IKET_SELECTION="kernel Many")
        self.assert_trace("a.json", 0)

    def test_without_a_place_for_what_is_recorded_meanwhile(self):
        done = self.start(PROGRAM, IMAGE, "Work", *"create load start launch".split(), TMPDIR="/proc/nowhere")
        self.assertIn(f"start {NOT_INSTRUMENTED}\n", done.stdout)
        self.assertRegex(done.stderr, "^iket: not traced: .*no temporary folder: .*TMPDIR.*\n.*not started.*\n$")

    # --- files -------------------------------------------------------------------------------------

    def test_where_nothing_can_be_written(self):
        os.symlink("elsewhere", self.path("link"))
        os.mkdir(self.path("folder"))
        with open(self.path("old.json"), "w", encoding="utf-8") as file:
            file.write("old")
        said = self.run_words("create load start launch stop save=no/such/folder/a.json save=link save=folder save= "
                              "save=old.json", IKET_QUIET="1")
        self.assertEqual(said[-5:], [f"save {IO}"] * 4 + ["save 0"])
        self.assert_trace("old.json", 1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["folder", "link", "old.json", "tmp"])

    def test_a_capture(self):
        self.run_words("create load launch start launch stop launch save=a.iketcap")
        report = json.loads(self.start(IKET, "report", "--json", self.path("a.iketcap")).stdout)
        self.assertEqual((report["trust"]["launches"]["all"], report["trust"]["launches"]["complete"]), (1, 1))

    def test_without_the_command(self):
        alone = self.path("alone")
        os.mkdir(alone)
        shutil.copy(LIBRARY, alone)
        words = "create load start launch stop save=a.json save=a.iketcap"
        said = self.run_words(words, libraries=(alone,), says="bin/iket: No such file or directory: it makes traces")
        self.assertEqual(said[-2:], [f"save {IO}", "save 0"])
        self.assertFalse(os.path.exists(self.path("a.json")))
        self.run_words(words, libraries=(alone,), IKET_COMMAND=IKET)
        self.assert_trace("a.json", 1)
        said = self.run_words(words, libraries=(alone,), IKET_COMMAND="/bin/false", says="it does not say why")
        self.assertEqual(said[-2:], [f"save {IO}", "save 0"])

    def test_children_that_are_reaped_by_others(self):
        # A program that ignores SIGCHLD has no exit codes of children.
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            command = [PROGRAM, IMAGE, "Work", *"create load start launch stop save=a.json".split()]
            libraries = os.path.dirname(LIBRARY) + (":" + os.environ["IKET_SIM"] if DEVICE == "sim" else "")
            with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=self.folder, restore_signals=False,
                                  env={**os.environ, "LD_LIBRARY_PATH": libraries}) as program:
                said = program.communicate(timeout=60)[0].decode()
        finally:
            signal.signal(signal.SIGCHLD, before)
        self.assertTrue(said.endswith("save 0\ndone, ok\n"), said)
        self.assert_trace("a.json", 1)


if __name__ == "__main__":
    unittest.main()
