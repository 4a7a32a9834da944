"""A program that traces itself: iket/embed.h. On the software device, or on a GPU with IKET_TEST_DEVICE=gpu."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

IKET, PROGRAM, COLLECTOR = (os.environ[name] for name in ("IKET", "IKET_SIM_EMBED", "IKET_COLLECTOR"))
IMAGE = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "marked.cubin")
PLAIN = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "plain.cubin")
FRAMEWORKS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../examples/frameworks")
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")
WARPS = 4  # of each launch


# A launch by ctypes, with iket_embed.py.
PYTHON = """
import ctypes, sys, iket_embed

def good(code):
    assert code == 0, code

cuda = ctypes.CDLL("libcuda.so.1")
tracer = iket_embed.Tracer(**eval(sys.argv[3]))
context, module, kernel, memory = (ctypes.c_void_p() for _ in range(4))
good(cuda.cuInit(0))
good(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
good(cuda.cuCtxSetCurrent(context))
good(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)))
with open(sys.argv[1], "rb") as file:
    original = file.read()
image = tracer.patch(original)
print("original" if image.data == original else "patched")
good(cuda.cuModuleLoadData(ctypes.byref(module), image.data))
image.bind(module.value)
good(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"Work"))
tracer.launching(kernel.value, (2,), (64,))
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
good(cuda.cuLaunchKernel(kernel, 2, 1, 1, 64, 1, 1, 0, None, arguments, None))
tracer.write(sys.argv[2])
image.unbind(module.value)
good(cuda.cuModuleUnload(module))
"""


class Embed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.temporary = self.path("tmp")
        os.mkdir(self.temporary)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *command, **variables):
        if DEVICE == "sim":
            variables["LD_LIBRARY_PATH"] = os.environ["IKET_SIM"]
        variables["TMPDIR"] = self.temporary
        return subprocess.run(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, check=False, text=True, cwd=self.folder)

    def run_words(self, *words, image=IMAGE, **variables):
        done = self.start(PROGRAM, COLLECTOR, image, *words, **variables)
        self.assertTrue(done.stdout.endswith("done, ok\n"), done.stdout + done.stderr)
        return done

    def json(self, command, capture):
        done = self.start(IKET, command, "--json", capture)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_holds(self, capture, launches, complete=None, marks=None):
        """The number of launches, of those that are complete, and of marks."""
        self.assertEqual(self.start(IKET, "check", capture).returncode, 0)
        report = self.json("report", capture)
        trust = report["trust"]
        self.assertEqual((trust["launches"]["all"], trust["launches"]["complete"]),
                         (launches, launches if complete is None else complete))
        self.assertEqual(trust["counters"]["records_lost"], 0)
        self.assertEqual(sum(mark["n"] for mark in report["marks"]), WARPS * launches if marks is None else marks)
        return report

    def assert_left_nothing(self):
        self.assertEqual(os.listdir(self.temporary), [])
        self.assertFalse(os.path.exists(self.path("iket_output")))

    def test_a_program_writes_what_it_recorded(self):
        done = self.run_words("open", "load", "launch", "launch", "write=a.iketcap", "launch", "write=b.iketcap")
        self.assertEqual(done.stdout, "open ok\nwrite ok\nwrite ok\ndone, ok\n")
        self.assertEqual(done.stderr, "")
        self.assert_holds(self.path("a.iketcap"), 2)
        self.assert_holds(self.path("b.iketcap"), 3)
        self.assert_left_nothing()
        done = self.start(IKET, "export", "--format", "pftrace", "-o", self.path("traces"), self.path("b.iketcap"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_nothing_is_said_or_done_without_it(self):
        done = self.run_words("load", "launch", "write=a.iketcap", "flush", "snapshot", "attached")
        self.assertEqual(done.stdout, "write iket_embed_open() has not been called, or failed\n"
                                      "flushed 0\nsnapshot \nattached 0\ndone, ok\n")
        self.assertEqual(done.stderr, "")
        self.assert_left_nothing()

    def test_an_image_that_the_program_loads_itself(self):
        # Without a word about launches, events are there all the same; with it, launches are complete.
        done = self.run_words("open", "take", "launch", "write=a.iketcap", "unload", "take", "say", "launch",
                              "write=b.iketcap")
        self.assertEqual(done.stdout, "open ok\npatched\nwrite ok\npatched\nwrite ok\ndone, ok\n")
        self.assertEqual(done.stderr, "")
        self.assert_holds(self.path("a.iketcap"), 1, complete=0)
        self.assert_holds(self.path("b.iketcap"), 2, complete=1, marks=WARPS)
        self.assert_left_nothing()

    def test_what_has_no_marks_is_left_alone(self):
        done = self.run_words("open", "take", "launch", "write=a.iketcap", image=PLAIN)
        self.assertEqual(done.stdout, "open ok\noriginal\n"
                                      "write a.iketcap: nothing to write: no code with marks has been loaded\n"
                                      "done, ok\n")
        self.assertFalse(os.path.exists(self.path("a.iketcap")))
        self.assert_left_nothing()

    def test_the_session_of_a_program_that_embeds(self):
        done = self.run_words("open", "load", "stop", "launch", "start", "launch", "mark=here", "stop", "launch",
                              "write=a.iketcap", "attached")
        self.assertIn("attached 1\n", done.stdout)
        self.assert_holds(self.path("a.iketcap"), 1)
        notes = [note["text"] for note in self.json("info", self.path("a.iketcap"))["notes"]
                 if note["severity"] == "host mark"]
        self.assertEqual(notes, ["here"])

    def test_the_session_is_asked_first(self):
        done = self.run_words("attached", "mark=lost", "open", "attached", "load", "mark=kept", "launch",
                              "write=a.iketcap")
        self.assertEqual(done.stdout, "attached 0\nopen ok\nattached 1\nwrite ok\ndone, ok\n")
        notes = [note["text"] for note in self.json("info", self.path("a.iketcap"))["notes"]]
        self.assertEqual(notes, ["kept"])

    def test_functions_that_the_driver_gave_out(self):
        # A launch by the hook counts, whoever looked the function up.
        self.run_words("open", "load", "look-up", "stop", "launch", "start", "launch", "write=a.iketcap")
        self.assert_holds(self.path("a.iketcap"), 1)

    def test_a_flush_keeps_what_is_written_over(self):
        for how, worked in (("flush", WARPS), ("attached", 0)):
            done = self.run_words("open=out", "load", "launch", "sync", how, "many", "write=a.iketcap", "launch",
                                  "write=b.iketcap", IKET_RING_BYTES="4096")
            self.assertEqual("flushed 1\n" in done.stdout, how == "flush")
            for name, launches in (("a", 2), ("b", 3)):
                report = self.json("report", self.path(f"{name}.iketcap"))
                # Of partial launches marks are listed where none is complete.
                marks = sum(mark["n"] for mark in report["marks"] if mark["name"] == "worked")
                if name == "a" and (how == "flush" or DEVICE == "sim"):
                    self.assertEqual(marks, worked, how)
                if DEVICE == "sim":
                    self.assertEqual(report["trust"]["launches"]["complete"], launches - 2)
                counters = report["trust"]["counters"]
                self.assertEqual(counters["records_written"], WARPS * (100_002 + 3 * (launches - 1)))
                self.assertEqual(counters["records_written"], counters["records_kept"] + counters["records_lost"])
                self.assertEqual(counters["suspect_rings"], 0)
            # At the end of the process its capture is in the folder.
            (final,) = glob.glob(self.path("out/*.iketcap"))
            # What is left of Many's warps in the rings has lost its begin, unless it was flushed.
            if DEVICE == "sim":  # a GPU may give the warps other rings
                self.assertEqual(self.start(IKET, "check", final).returncode, 0)
                orphans = self.json("report", final)["trust"]["counters"]["orphan_records"]
                self.assertEqual(orphans == 0, how == "flush", orphans)
            os.remove(final)

    def test_snapshots_need_a_folder(self):
        done = self.run_words("open=out", "load", "launch", "sync", "snapshot", "launch")
        snapshot = done.stdout.split("snapshot ")[1].splitlines()[0]
        self.assert_holds(self.path(snapshot), 1)
        (final,) = set(glob.glob(self.path("out/*"))) - {self.path(snapshot)}
        self.assert_holds(final, 2)
        done = self.run_words("open", "load", "launch", "sync", "snapshot")
        self.assertIn("snapshot \n", done.stdout)
        self.assertEqual(done.stderr, "iket: no snapshot: no folder for it: name one to iket_embed_open()\n")
        self.assert_left_nothing()

    def test_a_context_that_ends(self):
        # Told of it, its rings are read in time.
        self.run_words("open", "load", "launch", "sync", "destroy", "load", "launch", "write=a.iketcap")
        self.assert_holds(self.path("a.iketcap"), 2)

    def test_a_selection(self):
        done = self.run_words("open", "load", "launch", "write=a.iketcap", IKET_SELECTION="kernel Many")
        self.assertEqual(done.stderr, "")
        self.assertIn("nothing was recorded", self.start(IKET, "report", self.path("a.iketcap")).stderr)
        self.run_words("selection=window session", "load", "launch", "start", "launch", "write=b.iketcap")
        self.assert_holds(self.path("b.iketcap"), 1)
        done = self.run_words("selection=kernel (", "selection=window nvtx a", "selection=nonsense")
        for line, word in zip(done.stdout.splitlines(), ("regular expression", "iket profile --nvtx", "nonsense")):
            self.assertTrue(line.startswith("open ") and word in line, line)

    def test_under_iket_profile_it_changes_nothing(self):
        for load in ("load", "take"):
            done = self.start(IKET, "profile", "--device", DEVICE, "--export", "none", "-o", self.path(load), "--",
                              PROGRAM, COLLECTOR, IMAGE, "open=other", load, "say", "launch", "write=a.iketcap",
                              "launch")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_holds(self.path("a.iketcap"), 1)
            (final,) = glob.glob(self.path(f"{load}/*.iketcap"))
            self.assert_holds(final, 2)
            self.assertFalse(os.path.exists(self.path("other")))

    def test_what_is_launched_behind_the_collectors_last_word(self):
        # Rings are read in the program when it ends; the supervisor sees that there was more, and reads them again.
        for words, launches in ((("load", "launch", "sync"), 1), (("context", "later", "load", "launch", "sync"), 2)):
            done = self.start(IKET, "profile", "--device", DEVICE, "--export", "none", "-o", self.path("out"), "--",
                              PROGRAM, COLLECTOR, IMAGE, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            (final,) = glob.glob(self.path("out/*.iketcap"))
            self.assert_holds(final, launches)

    def test_only_files_are_replaced(self):
        # Nor does a write that fails take away what is there.
        os.symlink("elsewhere", self.path("link"))
        os.mkdir(self.path("folder"))
        done = self.run_words("open", "load", "launch", "write=a.iketcap", "write=link", "write=folder", "launch",
                              "write=a.iketcap")
        self.assertEqual(done.stdout.count("there is something that is no plain file"), 2)
        self.assertEqual(os.readlink(self.path("link")), "elsewhere")
        self.assert_holds(self.path("a.iketcap"), 2)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.iketcap", "folder", "link", "tmp"])

    @unittest.skipIf("IKET_SANITIZED" in os.environ, "Python brings no sanitizer's runtime along")
    def test_python(self):
        def run(image, options="{}"):
            return self.start("python3", "-c", PYTHON, image, "a.iketcap", options, PYTHONPATH=FRAMEWORKS,
                              PYTHONDONTWRITEBYTECODE="1", IKET_COLLECTOR=COLLECTOR)

        done = run(IMAGE)
        self.assertEqual((done.stdout, done.stderr), ("patched\n", ""))
        self.assert_holds(self.path("a.iketcap"), 1)
        done = run(IMAGE, '{"folder": "out", "ring_bytes": 8192, "flight": True, "selection": "launch 0:1"}')
        self.assertEqual((done.stdout, done.stderr), ("patched\n", ""))
        self.assert_holds(self.path("a.iketcap"), 1)
        (final,) = glob.glob(self.path("out/*.iketcap"))
        self.assert_holds(final, 1)
        done = run(PLAIN)
        self.assertEqual(done.stdout, "original\n")
        self.assertIn("RuntimeError: a.iketcap: nothing to write", done.stderr)
        done = run(IMAGE, '{"ring_bytes": 1000}')
        self.assertRegex(done.stderr, "RuntimeError: .*power of two")
        done = run(IMAGE, '{"folder": "/proc/nowhere"}')
        self.assertIn("RuntimeError: /proc/nowhere: no folder to write to", done.stderr)
        done = run(IMAGE, '{"selection": "kernel ("}')
        self.assertIn("RuntimeError: '(' is no regular expression", done.stderr)

    def test_what_goes_wrong_is_said(self):
        done = self.start(PROGRAM, self.path("no.so"), IMAGE, "open", "load", "launch")
        self.assertRegex(done.stdout, r"^open .*no\.so.*\ndone, ok\n$")
        done = self.start(PROGRAM, "libc.so.6", IMAGE, "open")
        self.assertIn("open the library is of another version of iket, or none of iket's\n", done.stdout)
        done = self.run_words("open", "load", "launch", "write=no/such/folder/a.iketcap", "write=")
        self.assertRegex(done.stdout, r"write no/such/folder/a\.iketcap.*No such file or directory\nwrite no path\n")
        self.assert_left_nothing()
        done = self.run_words("open", "load", "launch", "write=a.iketcap", TMP="x", IKET_RING_BYTES="1000")
        self.assertIn("not traced", done.stderr)


if __name__ == "__main__":
    unittest.main()
