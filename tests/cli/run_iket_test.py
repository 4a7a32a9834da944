"""run-iket without a GPU: its options are those of NVIDIA's run-iket 4.8.1, its folders and exit codes, too.

What is recorded through it is tested in tests/sim/run_iket_test.py.
"""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness

# Of run-iket 4.8.1: where, names, whether there is a value, and the values that it takes if not all do.
OPTIONS = [
    ("", ["--context-buffer-size"], True, None),
    ("", ["--log-level"], True, ["error", "warn", "info"]),
    ("", ["--working-dir"], True, None),
    ("", ["--output-dir", "-o"], True, None),
    ("", ["--clobber"], False, None),
    ("profile", ["--use-config"], True, None),
    ("profile", ["--use-tracker-dir"], True, None),
    ("profile", ["--max-ts-cnt-per-warp"], True, None),
    ("profile", ["--postprocess"], True, ["perfetto", "json", "html", "none", "all"]),
    ("profile", ["--keep", "--no-keep"], False, None),
    ("profile", ["--enable-stats"], False, None),
    ("profile", ["--warp-trace"], False, None),
    ("profile", ["--defer-trace-readback", "--no-defer-trace-readback"], False, None),
    ("profile", ["--enabled-cluster"], True, None),
    ("profile", ["--enabled-cluster-config"], True, None),
    ("postprocess", ["--format"], True, ["perfetto", "json", "html", "all"]),
    ("postprocess", ["--output-dir"], True, None),
]
# Beyond those: what every program of iket has.
OWN = {"", "--version", "--help", "-h"}


class RunIketTest(harness.CliTest):
    program = harness.RUN_IKET

    def setUp(self):
        super().setUp()
        self.environment = {name: value for name, value in os.environ.items()
                            if name != "IKET_DEVICE" and not name.startswith("CUTE_")}

    def run_iket(self, *arguments, **options):
        options.setdefault("env", self.environment)
        return self.run_program(self.program, *arguments, **options)

    def profile(self, *arguments, common=("-o", "out", "--clobber"), program=("true",), **options):
        return self.run_iket(*common, "profile", *arguments, "--", *program, **options)


class Options(RunIketTest):
    def test_they_are_the_same(self):
        for where in ("", "profile", "postprocess"):
            result = self.run_iket(*([where] if where else []), "--help")
            self.assertEqual((result.code, result.err), (0, ""))
            ours = set()
            for line in result.out.splitlines():
                if line.startswith("  -"):
                    words = re.match(r"  (\S+(?:, ?\S+)*)", line).group(1)
                    ours |= {re.sub(r"[\[{].*", "", word) for word in words.split(",")}
            theirs = {name for place, names, _, _ in OPTIONS if place == where for name in names}
            self.assertEqual(ours - OWN, theirs, result.out)

    def test_values_are_taken_and_refused_alike(self):
        for where, names, has_value, choices in OPTIONS:
            for name in names:
                option = [name, choices[0] if choices else "1"] if has_value else [name]
                words = [*option, "profile"] if where == "" else [where, *option]
                with self.subTest(words):
                    # A program, or a run, that there is not: far enough to have read all words.
                    tail = ["nowhere"] if where == "postprocess" else ["--", "./no-such-program"]
                    # 1 is no cluster and no file with some.
                    code = 2 if name.startswith("--enabled-cluster") else 1
                    self.assert_one_line(self.run_iket(*words, *tail), code)
                    if has_value:
                        self.assertEqual(self.run_iket(*words[:1 + (where != "")]).code, 2)
                for choice in choices or []:
                    words = [name, choice, "profile"] if where == "" else [where, name, choice]
                    self.assertEqual(self.run_iket(*words, *tail).code, 1)
                if choices:
                    words = [name, "docx", "profile"] if where == "" else [where, name, "docx"]
                    self.assertEqual(self.run_iket(*words, *tail).code, 2)

    def test_wrong_use(self):
        for code, arguments in (
            (2, []),
            (2, ["frobnicate", "--", "true"]),
            (2, ["profile"]),
            (2, ["profile", "--"]),
            (2, ["profile", "--postprocess", "docx", "--", "true"]),
            (2, ["profile", "--max-ts-cnt-per-warp", "many", "--", "true"]),
            (2, ["profile", "--enabled-cluster", "1,0", "--", "true"]),
            (2, ["profile", "--enabled-cluster", "-1,0,0", "--", "true"]),
            (2, ["profile", "--enabled-cluster", "4294967296,0,0", "--", "true"]),
            (2, ["profile", "--enabled-cluster", "0,65536,0", "--", "true"]),
            (2, ["profile", "--enabled-cluster", "1,0,0,", "--", "true"]),
            (2, ["profile", "--warp-trace", "--enabled-cluster", "1,0,0", "--", "true"]),
            (2, ["profile", "--enable", "--", "true"]),  # the beginning of three
            (2, ["--log-level", "debug", "profile", "--", "true"]),
            (2, ["postprocess"]),
            (2, ["postprocess", "--format", "none", "x"]),
            # The program without its `--`, and what is taken for one.
            (1, ["profile", "true"]),
            (1, ["profile", "true", "--", "x"]),
            (1, ["--frobnicate", "profile", "--", "true"]),
            (1, ["profile", "--frobnicate", "--", "true"]),
            (1, ["profile", "--clobber", "--", "true"]),
            (1, ["--context-buffer-size", "large", "profile", "--", "true"]),
            (1, ["--context-buffer-size", "M", "profile", "--", "true"]),
            (1, ["profile", "--", "no-such-program"]),
            (1, ["postprocess", "no-such-folder"]),
        ):
            with self.subTest(arguments):
                self.assert_one_line(self.run_iket(*arguments), code)
                self.assertEqual(os.listdir(self.folder), [])

    def test_a_device_that_is_none(self):
        result = self.profile(env={**self.environment, "IKET_DEVICE": "abacus"})
        self.assert_one_line(result, 2)
        self.assertIn("IKET_DEVICE is 'abacus'", result.err)
        self.assert_one_line(self.iket("profile", "--", "true", env={**self.environment, "IKET_DEVICE": "x"}), 2)

    def test_what_is_needless_says_so_in_a_line_each(self):
        for common, option in (
            ([], ["--max-ts-cnt-per-warp", "4096"]),
            ([], ["--use-tracker-dir", "nowhere"]),
            ([], ["--keep"]),
            ([], ["--use-config", "nowhere", "--warp-trace"]),
            ([], ["--defer-trace-readback"]),
            ([], ["--no-defer-trace-readback"]),
        ):
            with self.subTest(common + option):
                result = self.profile(*option, common=["-o", "out", "--clobber", *common])
                said = [line for line in result.out.splitlines() if " has no effect: " in line]
                self.assertEqual(len(said), 1, result.out)
                self.assertTrue(said[0].startswith(f"[run-iket] {(common + option)[0]} has no effect: "))
        self.assertNotIn("no effect", self.profile("--no-keep").out)

    def test_the_last_of_several_counts_and_a_beginning_is_enough(self):
        self.assertNotIn("--keep has", self.profile("--keep", "--no-keep").out)
        self.assertIn("--keep has", self.profile("--no-k", "--keep").out)
        self.assertIn("--max-ts-cnt-per-warp has", self.profile("--max=7").out)
        self.run_iket("-o", "a", "--out", "b", "profile", "--", "true")
        self.assertEqual((os.path.exists(self.path("a")), os.path.exists(self.path("b"))), (False, True))


class Program(RunIketTest):
    def test_its_exit_code(self):
        for line, code, said in (("exit 3", 3, 3), ("kill -TERM $$", 241, -15), ("kill -KILL $$", 247, -9)):
            result = self.profile(program=("sh", "-c", line))
            self.assertEqual(result.code, code, result.err)
            self.assertIn(f"[run-iket] Launch GPU workload exits abnormally with return code: {said} => "
                          "Tool: iket, Job: iket\n", result.out)

    def test_one_that_uses_no_gpu_is_a_failure(self):
        result = self.profile()
        self.assertEqual(result.code, 1)
        self.assertRegex(result.err, "^run-iket: nothing was recorded: ")

    def test_its_words_are_its_own(self):
        result = self.profile(program=("echo", "--clobber", "--", "-o", "x"))
        self.assertIn("\n--clobber -- -o x\n", result.out)

    def test_both_of_its_streams_come_out_of_one(self):
        result = self.profile(program=("sh", "-c", "echo first; echo second >&2; echo third"))
        said = [line for line in result.out.splitlines() if not line.startswith("[run-iket]")]
        self.assertEqual(said, ["first", "second", "third"])
        self.assertLess(result.out.index("for real profiling"), result.out.index("first"))

    def test_runs_in_the_working_folder(self):
        os.mkdir(self.path("work"))
        self.write("work/here", b"#!/bin/sh\npwd\n")
        os.chmod(self.path("work/here"), 0o755)
        result = self.profile(common=("--working-dir", "work/"), program=("./here",))
        self.assertIn(f"\n{os.path.realpath(self.path('work'))}\n", result.out)
        self.assertIn(f"[run-iket] No --output-dir given, using {self.path('work/iket_output')}\n", result.out)
        self.assertTrue(os.path.isdir(self.path("work/iket_output")))
        # Named folders are seen from where run-iket was started.
        self.profile(common=("--working-dir", "work", "-o", "out"), program=("./here",))
        self.assertTrue(os.path.isdir(self.path("out")))
        result = self.profile(common=("--working-dir", "nowhere", "-o", "out2"))
        self.assert_one_line(result, 1)

    def test_dsls_of_the_cute_family_are_told_to_keep_their_marks(self):
        show = ("sh", "-c", "echo [$CUTE_DSL_COMPILER_OPT][$CUTE_EXPERIMENTAL_DSL_COMPILER_OPT]")
        env = {**self.environment, "CUTE_EXPERIMENTAL_DSL_COMPILER_OPT": "opt-level=2"}
        self.assertIn("\n[iket][opt-level=2 iket]\n", self.profile(program=show, env=env).out)
        env["CUTE_DSL_COMPILER_OPT"] = "--iket,x"
        self.assertIn("\n[--iket,x][opt-level=2 iket]\n", self.profile(program=show, env=env).out)
        self.assertIn("[--iket,x][opt-level=2 iket]\n", self.iket("profile", "--", *show, env=env).out)

    def test_stats(self):
        said = self.profile("--enable-stats", program=("sh", "-c", "exit 3")).out
        for line in ("run-iket stats summary:", "  tracker workload:      skipped",
                     r"  profiling workload:    \d+\.\d{3} s", r"  postprocess:           \d+\.\d{3} s",
                     "    C\\+\\+ Perfetto trace export:   skipped", r"  total:                 \d+\.\d{3} s"):
            self.assertRegex(said, rf"\n\[run-iket\] {line}\n")
        with open(self.path("out/run-iket.stats.json"), encoding="utf-8") as file:
            stats = json.load(file)
        self.assertEqual({key: stats[key] for key in ("meta", "clock", "unit")},
                         {"meta": {"version": 1}, "clock": "monotonic", "unit": "nanoseconds"})
        self.assertEqual(list(stats["phases"]), ["trackerWorkload", "configGeneration", "profilingWorkload",
                                                 "postprocess", "cleanup"])
        self.assertEqual(list(stats["phases"]["postprocess"]["subphases"]),
                         ["rawCaptureDecoderInit", "perfettoTraceExport", "decodedJsonExport", "pftraceWrite",
                          "optionalOutput"])
        for phase in (*stats["phases"].values(), *stats["phases"]["postprocess"]["subphases"].values()):
            self.assertIn(phase["status"], ("completed", "skipped"))
            self.assertEqual(phase["durationNs"] is None, phase["status"] == "skipped")
        self.assertGreaterEqual(stats["totalNs"], stats["phases"]["profilingWorkload"]["durationNs"])

    def test_an_interrupt(self):
        process = subprocess.Popen([self.program, "-o", "out", "profile", "--", "sleep", "30"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(self.path("out/.iket_output")):
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 130)


class Folder(RunIketTest):
    def test_one_that_is_there_stays_without_clobber(self):
        self.write_old()
        result = self.profile(common=("-o", "out"), program=("touch", "ran"))
        self.assertEqual((result.code, result.err), (1, ""))
        self.assertIn(f"[run-iket] Output directory {self.path('out')} already exists", result.out)
        self.assertTrue(os.path.exists(self.path("out/notes")))
        self.assertFalse(os.path.exists(self.path("ran")))

    def write_old(self):
        os.makedirs(self.path("out/iket/pid_0x1"))
        for name in ("notes", "iket_pid_0x1.pftrace", "iket/pid_0x1/iket.data.json"):
            self.write("out/" + name, b"old")

    def test_clobber_makes_it_anew(self):
        self.write_old()
        result = self.profile()
        self.assertIn(f"[run-iket] Removing existing output directory: {self.path('out')}\n", result.out)
        self.assertEqual(os.listdir(self.path("out")), [".iket_output"])

    def test_a_mistyped_program_removes_nothing(self):
        self.write_old()
        self.assert_one_line(self.profile(program=("./typo",)), 1)
        self.assertTrue(os.path.exists(self.path("out/notes")))

    def asked(self, answer):
        self.write_old()
        keyboard, terminal = pty.openpty()
        os.write(keyboard, answer)
        result = self.profile(common=("-o", "out"), stdin=terminal)
        os.close(keyboard)
        os.close(terminal)
        self.assertIn("already exists. Remove it? [y/N]: ", result.out)
        return os.path.exists(self.path("out/notes")), "for real profiling" in result.out

    def test_a_person_is_asked(self):
        self.assertEqual(self.asked(b"y\n"), (False, True))

    def test_a_person_says_no(self):
        self.assertEqual(self.asked(b"\n"), (True, False))

    def test_folders_that_are_never_removed(self):
        os.makedirs(self.path("a/b"))
        self.write("a/b/thesis.tex", b"x")
        os.symlink(self.path("a"), self.path("link"))
        for common, options in (
            (["-o", "."], {}),
            (["-o", self.folder], {}),
            (["-o", ".."], {}),
            (["-o", "/"], {}),
            (["-o", "a", "--working-dir", "a"], {}),
            (["-o", "a", "--working-dir", "a/b"], {}),
            (["-o", "../b"], {"cwd": self.path("a/b")}),
            (["-o", "link"], {}),
            (["-o", "link/"], {}),
        ):
            with self.subTest(common):
                self.assert_one_line(self.profile(common=[*common, "--clobber"], **options), 1)
                self.assertTrue(os.path.exists(self.path("a/b/thesis.tex")))

    def test_places_where_nothing_can_be_written(self):
        self.write("file", b"x")
        for place in ("/proc/x", "file", "file/below"):
            self.assert_one_line(self.profile(common=("-o", place, "--clobber")), 1)

    def test_one_that_another_run_is_using(self):
        result = self.profile(program=(self.program, "-o", "out", "--clobber", "profile", "--", "true"))
        self.assertIn("another iket profile is using it", result.out)
        self.assertTrue(os.path.exists(self.path("out")))


class Configurations(RunIketTest):
    def refused(self, option, code, text):
        path = self.write("config.json", text)
        result = self.profile(option, path)
        self.assert_one_line(result, code)
        self.assertIn("config.json", result.err)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_clusters(self):
        for text in (b"", b"no JSON", b"[]", b"7", b'{"k": [1, 2]}', b'{"k": [1, 2, -1]}', b'{"k": [1, 2, true]}',
                     b'{"k": [0, 65536, 0]}', b'{"k": "some"}', b'{"k": {"x": 0}}', b"[" * 100):
            with self.subTest(text):
                self.refused("--enabled-cluster-config", 2, text)
        self.assert_one_line(self.profile("--enabled-cluster-config", "missing.json"), 2)

    def test_instruments(self):
        for text in (b"", b"no JSON", b"[]", b"{}", b'{"meta": {"version": 0}, "configs": []}',
                     b'{"meta": {"version": 1}, "modules": []}', b'{"meta": {"version": 1}, "modules": 7}',
                     b'{"meta": {"version": 1}, "modules": [{"functions": {"": []}}]}',
                     b'{"meta": {"version": 1}, "modules": [{"functions": {"a\\nb": []}}]}'):
            with self.subTest(text):
                self.refused("--use-config", 1, text)
        self.assert_one_line(self.profile("--use-config", "missing.json"), 1)


class Postprocess(RunIketTest):
    def made(self, folder="run"):
        return sorted(name for name in os.listdir(self.path(folder)) if not name.endswith(".iketcap"))

    def run_of(self, *captures):
        os.mkdir(self.path("run"))
        for kind, name in captures:
            self.capture(kind, "run/" + name)

    FILES = {"perfetto": [".pftrace"], "json": [".trace.json"], "html": [".html", ".pftrace.gz"],
             "all": [".html", ".pftrace", ".pftrace.gz", ".trace.json"]}

    def test_names_for_each_choice(self):
        self.run_of(("complete", "iket_pid_0x12.iketcap"))
        for choice, endings in self.FILES.items():
            result = self.run_iket("postprocess", "run", "--output-dir", choice, "--format", choice)
            self.assertEqual((result.code, result.err), (0, ""))
            self.assertEqual(self.made(choice), ["iket_pid_0x12" + ending for ending in endings])
            for ending in endings:
                self.assertIn(f"[run-iket]   -> {self.path(choice)}/iket_pid_0x12{ending}\n", result.out)
        result = self.run_iket("postprocess", "run")
        self.assertEqual(self.made(), self.made("all"))
        self.assertIn("Found in " + self.path("run") + ": 1 capture of iket, 0 captures of run-iket\n", result.out)
        self.assertIn("[run-iket] Post-processing results for pid 0x12...\n", result.out)
        self.assertIn("[run-iket] Post-processing complete. 1 pid(s) processed.\n", result.out)
        for path in ("iket_pid_0x12.pftrace", "iket_pid_0x12.pftrace.gz", "iket_pid_0x12.trace.json"):
            self.assertEqual(self.iket("check", self.path("run", path)).code, 0)

    def test_files_are_those_of_iket_export(self):
        self.run_of(("complete", "iket_pid_0x12.iketcap"))
        self.run_iket("postprocess", "run")
        for format_ in ("pftrace", "trace.json"):
            self.iket("export", "run/iket_pid_0x12.iketcap", "-o", "other." + format_)
            self.assertEqual(self.read("other." + format_), self.read("run", "iket_pid_0x12." + format_))

    def test_several_processes_of_which_one_is_bad(self):
        self.run_of(("complete", "iket_pid_0x1.iketcap"), ("complete", "iket_pid_0x3.iketcap"))
        self.write("run/iket_pid_0x2.iketcap", b"no capture")
        result = self.run_iket("postprocess", "run", "--format", "json")
        self.assert_one_line(result, 1)
        self.assertEqual(self.made(), ["iket_pid_0x1.trace.json", "iket_pid_0x3.trace.json"])
        self.assertIn("2 pid(s) processed", result.out)

    def test_where_run_iket_puts_its_captures(self):
        """That they are found and given to what reads them; what is read of them is tested there."""
        for place, stem in (("iket/pid_0x12", "0x12"), ("pid_0x12", "0x12"), ("", "iket")):
            with self.subTest(place):
                os.makedirs(self.path("run", place))
                self.write(os.path.join("run", place, "iket.data.json"), b"cut off")
                result = self.run_iket("postprocess", "run")
                self.assert_one_line(result, 1)
                self.assertIn(os.path.join(place, "iket.data.json"), result.err)
                self.assertIn(": 0 captures of iket, 1 capture of run-iket\n", result.out)
                self.assertIn(f"Post-processing results for pid {stem}...\n", result.out)
                shutil.rmtree(self.path("run"))

    def test_a_folder_without_its_capture_is_passed_over(self):
        self.run_of(("complete", "iket_pid_0x1.iketcap"))
        os.makedirs(self.path("run/iket/pid_0x2"))
        result = self.run_iket("postprocess", "run")
        self.assertEqual(result.code, 0, result.err)
        self.assertIn(f"[run-iket] Warning: no raw capture found in {self.path('run/iket/pid_0x2')}, skipping\n",
                      result.out)

    def test_folders_with_nothing_to_process(self):
        self.run_of()
        for arguments in (["run"], ["run/missing"], ["."]):
            self.assert_one_line(self.run_iket("postprocess", *arguments), 1)
        self.capture("empty", "run/iket_pid_0x1.iketcap")
        self.assert_one_line(self.run_iket("postprocess", "run"), 1)
        self.write("file", b"x")
        self.capture("complete", "run/iket_pid_0x1.iketcap")
        self.assert_one_line(self.run_iket("postprocess", "run", "--output-dir", "file"), 1)

    def test_words_that_run_iket_does_not_look_at(self):
        self.run_of(("complete", "iket_pid_0x12.iketcap"))
        result = self.run_iket("-o", "elsewhere", "postprocess", "run", "more")
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("'more' has no effect", result.out)
        self.assertIn("--output-dir in front of postprocess has no effect", result.out)
        self.assertFalse(os.path.exists(self.path("elsewhere")))

    def test_the_page_opens_the_trace_beside_it_in_perfetto_alone(self):
        self.run_of(("complete", "iket_pid_0x12.iketcap"))
        self.run_iket("postprocess", "run", "--format", "html")
        page = self.read("run/iket_pid_0x12.html").decode()
        self.assertIn('data-trace="iket_pid_0x12.pftrace.gz"', page)
        self.assertEqual(set(re.findall(r"https?://[^'\"\s<]+", page)), {"https://ui.perfetto.dev"})

    def test_names_of_folders_do_not_become_markup(self):
        os.makedirs(self.path("run/iket/pid_x"))
        name = 'iket_pid_"><b>\u00e9.iketcap'
        self.capture("complete", os.path.join("run", name))
        self.run_iket("postprocess", "run", "--format", "html")
        page = self.read("run", name.replace(".iketcap", ".html")).decode()
        self.assertIn('data-trace="iket_pid_&#34;&#62;&#60;b&#62;\u00e9.pftrace.gz"', page)
        self.assertNotIn("<b>", page)


if __name__ == "__main__":
    unittest.main()
