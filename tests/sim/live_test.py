"""What a supervisor does while its programs run and when they are gone: snapshots, hangs, rings that
are emptied meanwhile, many processes. On the software device."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

IKET = os.environ["IKET"]
APP = os.environ["IKET_SIM_APP"]
MARKED = os.path.join(os.environ["IKET_SIM_APP_IMAGES"], "marked.cubin")
SIM_LIBRARY = os.environ["IKET_SIM"]


class Live(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(folder.name, "out")

    def start(self, *words, options=(), iket=IKET, **more):
        command = [iket, "profile", "--device", "sim", "-o", self.output, *options, "--", *words]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def profile(self, *words, **more):
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def endless(self, options=()):
        """A program whose kernel never ends, under iket, once all its warps have recorded something."""
        process = self.start(APP, MARKED, "Endless", options=options)
        self.assertEqual(process.stdout.readline(), "running\n")
        (child,) = self.children(process.pid)
        self.addCleanup(lambda: self.end(child))
        return process, child

    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]

    @staticmethod
    def end(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def iket(self, *words):
        return subprocess.run(
            [IKET, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )

    def report(self, capture):
        return json.loads(self.iket("report", "--json", capture).stdout)

    def captures(self, pattern="*"):
        return sorted(glob.glob(os.path.join(self.output, pattern + ".iketcap")))

    def assert_hangs(self, capture):
        (launch,) = self.report(capture)["standstill"]
        self.assertEqual((launch["kernel"], launch["launch"]), ("Endless", 0))
        self.assertEqual((launch["warps_running"], launch["warps_ended"]), (4, 0))
        (group,) = launch["groups"]
        self.assertEqual((group["open_ranges"], group["last_event"]), ([], "begun"))
        self.assertEqual(
            [(warp["cta_x"], warp["warp"]) for warp in group["warps"]], [(0, 0), (0, 1), (1, 0), (1, 1)]
        )

    def test_a_snapshot_shows_a_kernel_that_hangs(self):
        process, child = self.endless()
        # By the number of the program, of its supervisor, and by a signal.
        for number, asked in enumerate((child, process.pid), 1):
            done = self.iket("snapshot", str(asked))
            self.assertEqual(done.returncode, 0, done.stderr)
            path = os.path.join(self.output, f"iket_pid_{child:#x}_snapshot{number}.iketcap")
            self.assertEqual(done.stdout, path + "\n")
            self.assert_hangs(path)
        process.send_signal(signal.SIGUSR2)
        self.assertRegex(process.stderr.readline(), r"^iket: warning: snapshot: .*_snapshot3\.iketcap$")
        self.assertIsNone(process.poll())

        self.end(child)
        process.wait(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assertRegex(process.stderr.read(), r"(?m)^  not ended +4 warps; iket report says what")
        (final,) = [path for path in self.captures() if "snapshot" not in path]
        self.assert_hangs(final)
        text = self.iket("report", final).stdout
        self.assertRegex(text, r"(?m)^  Endless, launch 0: 4 warps had not ended, 0 had$")
        self.assertRegex(text, r"(?m)^ +4  none +begun +0\.00 ns .* CTA 0-1; warp 0-1$")
        # The next run takes the snapshots away with the rest.
        code, _, _ = self.profile(APP, MARKED, "Work")
        self.assertEqual((code, len(self.captures())), (0, 1))

    def test_a_snapshot_needs_somebody_to_ask(self):
        for pid, why in ((os.getpid(), "does not run under iket profile"), (2**22 + 1, "there is no process")):
            done = self.iket("snapshot", str(pid))
            self.assertEqual(done.returncode, 2)
            self.assertIn(why, done.stderr)
        process = self.start("sleep", "60")
        while not self.children(process.pid):
            time.sleep(0.01)
        time.sleep(0.2)
        done = self.iket("snapshot", str(process.pid))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has loaded code that can be traced, so far", done.stderr)
        process.terminate()
        process.wait(timeout=60)

    def test_a_hang_is_noticed(self):
        process, child = self.endless(options=("--hang", "0.5"))
        line = process.stderr.readline()
        found = re.fullmatch(
            rf"iket: warning: process {child} has running warps and recorded nothing for 0\.5 s: "
            r"see iket report (\S+)\n",
            line,
        )
        self.assertIsNotNone(found, line)
        self.assert_hangs(found.group(1))
        time.sleep(2)
        self.assertEqual(len(self.captures("*snapshot*")), 1, "said once")

    def test_a_deadlock_reads_as_two_lines(self):
        process = self.start(APP, MARKED, "Deadlock", options=("--hang", "0.5"))
        line = process.stderr.readline()
        (child,) = self.children(process.pid)
        self.addCleanup(lambda: self.end(child))
        capture = line.split()[-1]
        (launch,) = self.report(capture)["standstill"]
        self.assertEqual((launch["warps_running"], launch["warps_ended"]), (4, 0))
        states = {
            group["last_event"]: (
                group["open_ranges"],
                sorted((warp["cta_x"], warp["warp"], warp["payload"]) for warp in group["warps"]),
            )
            for group in launch["groups"]
        }
        # Each waits for the other: one time nothing was given back.
        self.assertEqual(
            states,
            {
                "wait room": (["tile", "load"], [(0, 0, "4"), (1, 0, "4")]),
                "wait data": (["tile", "multiply"], [(0, 1, "4"), (1, 1, "4")]),
            },
        )
        waits = {group["wait"]["event"]: (group["wait"]["partners"], group["wait"]["warps"],
                                          group["wait"]["warps_without_partner"]) for group in launch["groups"]}
        self.assertEqual(waits, {"wait room": (["arrive room"], 2, 2), "wait data": (["arrive data"], 2, 2)})
        text = self.iket("report", capture).stdout
        self.assertIn("wait room: 2 of 2 warps without a partner, arrive room came less often than they wait\n", text)

    def test_what_ends_is_no_hang(self):
        code, _, err = self.profile("sh", "-c", f"'{APP}' '{MARKED}' Work; sleep 2", options=("--hang", "0.2"))
        self.assertEqual(code, 0)
        self.assertNotIn("recorded nothing", err)

    def test_rings_are_emptied_while_a_kernel_runs(self):
        self.rings_are_emptied()

    def test_what_a_killed_supervisor_has_streamed_is_kept(self):
        for threads in ("1", "8"):
            with self.subTest(threads=threads):
                shutil.rmtree(self.output, ignore_errors=True)
                process = self.start(APP, MARKED, "Paced", options=("--ring", "64K", "--overflow", "stream"),
                                     env={**os.environ, "IKET_DRAIN_THREADS": threads})
                until = time.monotonic() + 30
                while time.monotonic() < until:
                    begun = glob.glob(os.path.join(self.output, "*.tmp"))
                    # A fifth of all events: they are packed.
                    if begun and os.path.getsize(begun[0]) > 20_000:
                        break
                    time.sleep(0.01)
                (child,) = self.children(process.pid)
                process.kill()
                process.wait(timeout=60)
                while os.path.exists(f"/proc/{child}") and time.monotonic() < until:
                    time.sleep(0.05)
                streamed, rest = [], []
                for capture in self.captures():
                    (streamed if capture.endswith("_streamed.iketcap") else rest).append(capture)
                self.assertEqual((len(streamed), len(rest)), (1, 1), self.captures())
                # Its end is missing; what is whole in it has its names.
                (mark,) = self.report(streamed[0])["marks"]
                self.assertEqual(mark["name"], "i")
                self.assertGreater(mark["n"], 1000)
                self.assertNotEqual(self.iket("check", streamed[0]).returncode, 0)
                self.assertIn(os.path.basename(streamed[0]), self.iket("info", rest[0]).stdout)

    def test_rings_are_emptied_by_many_threads(self):
        # As on a machine with many cores: the capture is a mapped file then.
        self.rings_are_emptied(env={**os.environ, "IKET_DRAIN_THREADS": "8"})

    def rings_are_emptied(self, **more):
        options = ("--ring", "64K", "--overflow", "stream")
        code, _, err = self.profile(APP, MARKED, "Paced", options=options, **more)
        self.assertEqual(code, 0, err)
        (capture,) = self.captures()
        self.assertRegex(err, r"events +60,000 kept, 0 lost \(0 %\)")
        self.assertEqual(self.iket("check", capture).returncode, 0)
        report = self.report(capture)
        self.assertEqual(report["trust"]["launches"]["complete"], 1)
        exported = self.iket("export", "--format", "trace.json", "-o", self.output + "/t.trace.json", capture)
        self.assertEqual(exported.returncode, 0, exported.stderr)

    def test_what_a_stream_cannot_keep_up_with_is_counted(self):
        kept = {}
        for how in ("keep-last", "stream"):
            code, _, err = self.profile(APP, MARKED, "Many", options=("--ring", "64K", "--overflow", how))
            self.assertEqual(code, 0, err)
            (capture,) = self.captures()
            trust = self.report(capture)["trust"]
            counters = trust["counters"]
            # Of each of four warps a begin, an identity and 100,000 marks: what was not kept is
            # counted, to the record.
            self.assertEqual(counters["records_written"], 4 * 100_002)
            self.assertEqual(counters["records_written"], counters["records_kept"] + counters["records_lost"])
            self.assertEqual(counters["lost_is_lower_bound"], 0)
            self.assertEqual(counters["suspect_rings"], 0)
            self.assertEqual(trust["launches"]["unknown"], 0)
            self.assertEqual(trust["warps"], 4)
            kept[how] = counters["records_kept"]
        self.assertEqual(kept["keep-last"], 4 * 4096)
        # Of a ring that came around the reader leaves one record out: see ring_follower.cpp.
        self.assertGreaterEqual(kept["stream"], kept["keep-last"] - 4)

    def test_many_processes_need_few_descriptors(self):
        script = f"ulimit -Sn 256; i=0; while [ $i -lt 12 ]; do '{APP}' '{MARKED}' Work || exit 9; i=$((i+1)); done"
        # Each process has about four of them, the hard limit is what the supervisor may use.
        code, _, err = self.profile("sh", "-c", script, preexec_fn=lambda: limit_descriptors(36))
        self.assertEqual(code, 0, err)
        self.assertNotIn("not read", err)
        captures = self.captures()
        self.assertEqual(len(captures), 12)
        for capture in captures:
            self.assertEqual(self.report(capture)["trust"]["launches"]["complete"], 1)

    def test_an_output_folder_that_goes_is_said(self):
        # The supervisor may be writing into it at that moment.
        remove = f"until rm -r '{self.output}' 2>/dev/null; do :; done"
        code, _, err = self.profile("sh", "-c", f"'{APP}' '{MARKED}' Work; {remove}")
        self.assertEqual(code, 4)
        self.assertNotIn("IKET_ENABLE", err)
        self.assertIn(self.output, err)

    def test_prefixes_that_lists_of_the_loader_cannot_hold(self):
        for name in ("p:q", "p;q", "p$ORIGIN", "p q"):
            with self.subTest(name):
                prefix = os.path.join(self.folder, name)
                os.makedirs(os.path.join(prefix, "bin"))
                shutil.copy(IKET, os.path.join(prefix, "bin"))
                library = os.path.dirname(SIM_LIBRARY)
                os.makedirs(os.path.join(prefix, "lib", "iket-sim"))
                shutil.copy(os.path.join(library, "libiket_inject.so"), os.path.join(prefix, "lib"))
                shutil.copy(os.path.join(SIM_LIBRARY, "libcuda.so.1"), os.path.join(prefix, "lib", "iket-sim"))
                code, _, err = self.profile(APP, MARKED, "Work", iket=os.path.join(prefix, "bin", "iket"))
                self.assertEqual(code, 0, err)
                self.assertEqual(len(self.captures()), 1)

    def test_places_for_the_socket_that_do_not_serve(self):
        gone = os.path.join(self.folder, "gone")
        os.mkdir(gone)
        deep = os.path.join(self.folder, *["deep" * 10] * 4)
        os.makedirs(deep)
        for place, start in ((".", gone), ("x", deep), ("/nowhere/at/all", self.folder), ("a b:c", self.folder)):
            with self.subTest(place):
                words = f"cd '{start}' && mkdir -p '{place}' 2>/dev/null; "
                words += f"rmdir '{gone}' 2>/dev/null; " if start == gone else ""
                words += f"exec '{IKET}' profile --device sim --clobber -o '{self.output}' -- '{APP}' '{MARKED}' Work"
                done = subprocess.run(
                    ["sh", "-c", words],
                    env={**os.environ, "TMPDIR": place},
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
                )
                self.assertEqual(done.returncode, 0, done.stdout)


def limit_descriptors(most):
    import resource  # pylint: disable=import-outside-toplevel

    resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


if __name__ == "__main__":
    unittest.main()
