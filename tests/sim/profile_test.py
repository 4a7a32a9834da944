"""`iket profile` on the software device: the examples' driver forms, and what a newcomer tries."""

import glob
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

IKET = os.environ["IKET"]
EXAMPLES = os.environ["IKET_EXAMPLES"]
APP = os.environ["IKET_SIM_APP"]
COLLECTOR = os.environ["IKET_COLLECTOR"]
THREADS = os.environ["IKET_SIM_THREADS"]
IMAGES = os.environ["IKET_SIM_APP_IMAGES"]


def environment(**more):
    return {**os.environ, "LD_LIBRARY_PATH": os.environ["IKET_SIM"], **more}


class Profile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(folder.name, "out")

    def profile(self, program, *arguments, options=(), **variables):
        command = [IKET, "profile", "-o", self.output, *options, "--"]
        command += [os.path.join(EXAMPLES, program), *arguments]
        return subprocess.run(
            command,
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
            text=True,
        )

    def test_saxpy_is_right_and_complete(self):
        done = self.profile(
            "saxpy_driver_marked", "--n", "100000", "--warmup", "0", "--iterations", "1"
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"what follows is no measurement\nsaxpy_driver_marked "
                                      r"n=100000: .*, ok")
        self.assertRegex(done.stdout, r"launches +1: 1 complete, 0 partial;")
        self.assertRegex(done.stdout, r"events +[\d,]+ kept, 0 lost")
        # Each warp of 32 threads takes a step an element: as many steps as 100000 / 32.
        steps = re.search(r"\bstep .* ([\d,]+) times", done.stdout)
        self.assertIsNotNone(steps, done.stdout)
        self.assertEqual(int(steps.group(1).replace(",", "")), 100000 // 32)

    def test_gemm_is_right_and_complete(self):
        done = self.profile(
            "gemm_mma_driver_marked", "--size", "256", "--warmup", "0", "--iterations", "1"
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"gemm_mma_driver_marked 256x256x256: .*, ok")
        self.assertRegex(done.stdout, r"launches +1: 1 complete, 0 partial;")

    def test_device_is_labelled(self):
        self.profile("saxpy_driver_marked", "--n", "1000", "--warmup", "0", "--iterations", "1")
        (capture,) = glob.glob(os.path.join(self.output, "*.iketcap"))
        info = subprocess.run(
            [IKET, "info", capture], stdout=subprocess.PIPE, timeout=60, check=True, text=True
        )
        self.assertIn("software device", info.stdout)

    def test_many_launches_on_one_stream_keep_their_order(self):
        done = self.profile(
            "saxpy_driver_marked", "--n", "2000", "--warmup", "3", "--iterations", "20"
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"launches +23: 23 complete, 0 partial;")

    def test_another_tool_is_named_where_nothing_was_recorded(self):
        done = self.profile("saxpy_driver", "--n", "1000", CUDA_INJECTION64_PATH="/opt/tool/lib.so")
        self.assertIn("; another tool is there that may be in the way: CUDA_INJECTION64_PATH=/opt/tool/lib.so\n",
                      done.stdout)

    def test_what_is_too_large_to_be_decoded_is_counted(self):
        for ring in ("256K", "4K"):  # without and with a loss
            said = {}
            for limit in (10**9, 1000):
                done = self.profile("saxpy_driver_marked", "--n", "300000", "--warmup", "0", "--iterations", "1",
                                    options=("--json", "--ring", ring), IKET_DECODE_BYTES=str(limit))
                self.assertEqual(done.returncode, 0, done.stdout)
                said[limit] = json.loads(done.stdout.splitlines()[-1])
            decoded, counted = said.values()
            same = ["records_written", "records_lost", "lost_is_lower_bound", "kernels", "device_memory_bytes"]
            # Decoded, a warp without its begin is one, too, and what is of no known warp is none.
            same += ["events_kept", "warps"] if ring == "256K" else []
            self.assertEqual({name: decoded[name] for name in same}, {name: counted[name] for name in same})
            (capture,) = [file["file"] for file in counted["files"]]
            self.assertEqual(counted["only_counted"], [capture])
            self.assertEqual((decoded["only_counted"], len(decoded["files"])), ([], 2))
            reports = {limit: subprocess.run([IKET, "report", capture], env=environment(IKET_DECODE_BYTES=str(limit)),
                                             capture_output=True, check=False, text=True) for limit in said}
            in_memory, in_files = reports.values()
            self.assertEqual((in_files.returncode, in_files.stdout), (in_memory.returncode, in_memory.stdout))
            self.assertRegex(in_files.stderr, r"larger, decoded, than memory \(\S+ [kM]B of 1.00 kB\): it lies in "
                                              r"files in \S+ meanwhile")
            done = self.profile("saxpy_driver_marked", "--n", "1000", IKET_DECODE_BYTES="1")
            self.assertRegex(done.stdout, r"only counted +\S+: decoded it would be larger than the memory")

    def test_memory_has_a_cap(self):
        done = self.profile("../tests/guest/process_driver", "contexts", options=("--memory", "400M"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("kernels of one more context run, but are not recorded: its rings would be "
                                           "above the 400 MiB that all may take (--memory)"), 1)
        self.assertRegex(done.stdout, r"launches +3: 3 complete, 0 partial")
        self.assertRegex(done.stdout, r"device memory +287 MB in 2 contexts, at most 419 MB at a time\n")
        self.assertRegex(done.stdout, r"not recorded +kernels of 1 context: no device memory for rings; try a smaller "
                                      r"--ring, or more --memory\n")
        done = self.profile("../tests/guest/process_driver", "contexts", options=("--memory", "100M"))
        self.assertIn("iket: rings have 8 KiB, not 32: all of them may take 100 MiB (--memory)", done.stdout)

    def test_marks_change_no_result_without_a_collector(self):
        for program in ("saxpy_driver", "saxpy_driver_marked"):
            done = subprocess.run(
                [os.path.join(EXAMPLES, program), "--n", "10000", "--iterations", "1"],
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=120,
                check=False,
                text=True,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r", ok\n$")

    def test_a_runtime_program_is_told_what_works(self):
        done = self.profile("saxpy_marked", "--n", "1000", "--iterations", "1")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count("iket-sim: the CUDA runtime (<<<>>> programs)"), 1)

    def test_interrupt_ends_program_and_keeps_the_account(self):
        command = [IKET, "profile", "-o", self.output, "--"]
        command += [os.path.join(EXAMPLES, "saxpy_driver_marked"), "--iterations", "20000"]
        running = subprocess.Popen(
            command,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        deadline = time.monotonic() + 60
        while not glob.glob(os.path.join(self.output, "*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)
        said, _ = running.communicate(timeout=120)
        self.assertNotEqual(running.returncode, 0, said)
        self.assertNotEqual(glob.glob(os.path.join(self.output, "*.iketcap")), [], said)


class Newcomer(unittest.TestCase):
    """A small program of one's own under `iket profile --device sim`, and what may be wrong with it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "out")
        self.image = lambda name: os.path.join(IMAGES, name)
        self.cut = os.path.join(folder.name, "cut.cubin")

    def command(self, *program):
        return [IKET, "profile", "--device", "sim", "-o", self.output, "--", *program]

    def run_(self, *program, **variables):
        """Exit code, what the program said, what the tools said."""
        done = subprocess.run(self.command(*program), env={**os.environ, **variables},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              check=False, text=True)
        return done.returncode, done.stdout, done.stderr

    def app(self, image, kernel="Work", *how, **variables):
        return self.run_(APP, self.image(image), kernel, *how, **variables)

    def captures(self):
        return glob.glob(os.path.join(self.output, "*.iketcap"))

    def report(self, capture):
        done = subprocess.run([IKET, "report", "--json", capture], stdout=subprocess.PIPE,
                              timeout=60, check=True)
        return json.loads(done.stdout)

    def test_help_says_what_it_is(self):
        done = subprocess.run([IKET, "profile", "--help"], stdout=subprocess.PIPE, check=True,
                              text=True)
        words = " ".join(done.stdout.split())
        self.assertIn("--device DEVICE", words)
        self.assertIn("sim: a software device that runs sm_90 code of driver-API programs", words)

    def test_a_marked_program(self):
        code, out, err = self.app("marked.cubin")
        self.assertEqual((code, out), (0, "done\n"), err)
        self.assertIn("times are a model's, nothing here is a measurement", err)
        (capture,) = self.captures()
        report = self.report(capture)
        self.assertTrue(report["trust"]["simulated"])
        self.assertEqual([(mark["name"], mark["n"]) for mark in report["marks"]], [("worked", 4)])
        with open(capture.replace(".iketcap", ".pftrace"), "rb") as file:
            self.assertIn(b"IKET (software device: no measurement)", file.read())

    def test_a_program_without_marks(self):
        code, out, err = self.app("plain.cubin")
        self.assertEqual((code, out), (4, "done\n"), err)
        self.assertRegex(err, r"^iket: nothing was recorded: .* built with IKET_ENABLE, and .*\n$")

    def test_a_runtime_program_is_told_what_to_do(self):
        code, _, err = self.run_(os.path.join(EXAMPLES, "saxpy_marked"), "--n", "1000")
        self.assertNotIn(code, (0, 4))
        self.assertEqual(err.count("iket-sim: the CUDA runtime (<<<>>> programs) accepts no "
                                   "software device: run this program on a GPU, or use the driver "
                                   "API or NVRTC, which work here"), 1, err)
        self.assertIn("<<<>>> programs do not run on the software device", err)

    def test_images_that_cannot_run(self):
        with open(self.image("marked.cubin"), "rb") as file:
            whole = file.read()
        with open(self.cut, "wb") as file:
            file.write(whole[: len(whole) // 2])
        for image, error, why in (
            ("sm_80.cubin", "CUDA_ERROR_NO_BINARY_FOR_GPU", "the cubin is for sm_80"),
            ("app.ptx", "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "the code is PTX only"),
            ("ptx.fatbin", "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "the code is PTX only"),
            (self.cut, "CUDA_ERROR_INVALID_IMAGE", "lie outside the file's"),
        ):
            with self.subTest(image):
                code, out, err = self.app(image)
                self.assertEqual((code, out), (1, f"cuModuleLoad(&module, image): {error}\n"), err)
                said = [line for line in err.splitlines() if line.startswith("iket-sim: ")]
                if "PTX" in why:  # which the collector has tried to compile before
                    self.assertIn("cuLinkCreate_v2: not part of the software device", said.pop(0))
                    self.assertEqual(err.count("iket: marked PTX could not be compiled"), 1, err)
                self.assertEqual(len(said), 1, err)
                self.assertIn(why, said[0])

    def test_ctrl_c_ends_an_endless_kernel(self):
        """To the whole group, as a terminal sends it, and to iket alone."""
        for whole_group in (True, False):
            with self.subTest(whole_group=whole_group):
                running = subprocess.Popen(
                    self.command(APP, self.image("marked.cubin"), "Endless"),
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                    text=True)
                self.assertEqual(running.stdout.readline(), "running\n")
                if whole_group:
                    os.killpg(running.pid, signal.SIGINT)
                else:
                    running.send_signal(signal.SIGINT)
                said, _ = running.communicate(timeout=60)
                self.assertEqual(running.returncode, 130, said)
                self.check_endless()

    def check_endless(self):
        """What the warps of the endless kernel marked is there, and the file is whole."""
        (capture,) = self.captures()
        subprocess.run([IKET, "check", capture], stdout=subprocess.DEVNULL, check=True)
        report = self.report(capture)
        self.assertEqual([(mark["name"], mark["n"]) for mark in report["marks"]], [("begun", 4)])
        self.assertEqual(report["trust"]["counters"]["warps_running"], 4)

    def test_a_time_limit_ends_an_endless_kernel(self):
        code, out, err = self.app("marked.cubin", "Endless", IKET_SIM_MAX_SECONDS="1")
        self.assertEqual((code, out), (1, "running\ncuCtxSynchronize(): CUDA_ERROR_LAUNCH_TIMEOUT\n"), err)
        self.assertIn("iket-sim: Endless: stopped after IKET_SIM_MAX_SECONDS\n", err)
        self.check_endless()

    def test_a_time_limit_that_is_none(self):
        code, out, err = self.app("marked.cubin", IKET_SIM_MAX_SECONDS="abc")
        self.assertEqual((code, out), (0, "done\n"), err)
        self.assertEqual(err.count("IKET_SIM_MAX_SECONDS is 'abc', which is no positive number of "
                                   "seconds; launches have no limit"), 1, err)

    def test_two_processes(self):
        line = f"'{APP}' '{self.image('marked.cubin')}' Work"
        code, out, err = self.run_("sh", "-c", f"{line} & {line}; wait")
        self.assertEqual((code, out), (0, "done\ndone\n"), err)
        self.assertEqual(len(self.captures()), 2)
        self.assertRegex(err, r"launches +2: 2 complete, 0 partial; 8 warps")

    def test_contexts_that_end_with_their_modules(self):
        # Handles of kernels come back as those of other modules.
        code, out, err = self.app("marked.cubin", "Work", "again")
        self.assertEqual((code, out), (0, "done\n" * 3), err)
        self.assertRegex(err, r"launches +3: 3 complete, 0 partial; 12 warps")

    def test_many_threads(self):
        # 8 threads x 6 rounds x 5 launches of 4 warps, in 48 images that come and go.
        code, out, err = self.run_(THREADS, self.image("marked.cubin"))
        self.assertEqual((code, out), (0, "8 threads: ok\n"), err)
        (capture,) = self.captures()
        report = self.report(capture)
        self.assertEqual([(mark["name"], mark["n"]) for mark in report["marks"]], [("worked", 20)] * 48)
        launches = report["trust"]["launches"]
        self.assertEqual((launches["all"], launches["complete"]), (240, 240))
        self.assertEqual(report["trust"]["counters"]["records_lost"], 0)

    def test_threads_that_work_when_the_program_ends(self):
        # What they say then, of a driver that is gone, is theirs to say.
        code, out, err = self.run_(THREADS, self.image("marked.cubin"), "leave")
        self.assertEqual(code, 0, err)
        self.assertIn("8 threads: ok\n", out)
        (capture,) = self.captures()
        subprocess.run([IKET, "check", capture], stdout=subprocess.DEVNULL, check=True)
        self.assertGreaterEqual(self.report(capture)["trust"]["launches"]["complete"], 200)

    def check_whole(self, captures=1):
        """That many captures, each with all that one run of the kernel Work records."""
        self.assertEqual(len(self.captures()), captures)
        self.assertEqual(glob.glob(os.path.join(self.output, "*.part")), [])
        for capture in self.captures():
            subprocess.run([IKET, "check", capture], stdout=subprocess.DEVNULL, check=True)
            report = self.report(capture)
            self.assertEqual([(mark["name"], mark["n"]) for mark in report["marks"]], [("worked", 4)])
            self.assertEqual(report["trust"]["launches"]["complete"], 1)

    def test_a_program_that_closes_descriptors(self):
        for how in ("close", "reuse"):
            with self.subTest(how):
                code, out, err = self.app("marked.cubin", "Work", how)
                self.assertEqual((code, out), (0, "done\n"), err)
                self.assertNotIn("incomplete", err)
                self.check_whole()

    def test_a_program_without_standard_streams(self):
        # What it prints must not land in the rings.
        code, out, err = self.app("marked.cubin", "Work", "no-streams")
        self.assertEqual((code, out), (0, ""), err)
        self.check_whole()

    def test_a_supervisor_that_was_killed(self):
        code, out, err = self.app("marked.cubin", "Work", "kill-parent")
        self.assertEqual((code, out), (-signal.SIGKILL, "done\n"), err)
        self.assertIn("iket: the supervisor was lost; rings are read in this process\n", err)
        self.check_whole()

    def test_a_program_that_executes_another(self):
        code, out, err = self.app("marked.cubin", "Work", "exec")
        self.assertEqual((code, out), (0, "done\ndone\n"), err)
        self.check_whole(captures=2)
        numbers = sorted(int(name[len("iket_pid_"):-len(".iketcap")], 16)
                         for name in map(os.path.basename, self.captures()))
        self.assertEqual(numbers[1] - numbers[0], 1 << 24)

    def test_executing_another_without_a_supervisor(self):
        os.mkdir(self.output)
        done = subprocess.run(
            [APP, self.image("marked.cubin"), "Work", "exec"],
            env=environment(LD_PRELOAD=COLLECTOR, IKET_OUTPUT=self.output),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "done\ndone\n"), done.stderr)
        self.assertRegex(done.stderr, r"^iket: .*iket_pid_0x\w+\.iketcap\.part is there already: if this "
                                      r"process executed another program before, .* lost, .*\n$")
        self.assertEqual(len(self.captures()), 1)

    def test_something_else_in_the_place_of_the_account(self):
        # No process's number is known before it runs, but the shell's, which becomes the program.
        script = (f"mkfifo '{self.output}'/$(printf 'iket_pid_0x%x.iketcap.part' $$); "
                  f"exec '{APP}' '{self.image('marked.cubin')}' Work")
        code, out, err = self.run_("sh", "-c", script)
        self.assertEqual((code, out), (0, "done\n"), err)
        self.assertRegex(err, r"iket: warning: \S+\.part: not a capture: it is not a regular file\n")
        (capture,) = self.captures()
        self.assertEqual(self.report(capture)["marks"][0]["n"], 4)

    def test_a_ring_size_that_is_none(self):
        done = subprocess.run(
            [APP, self.image("marked.cubin"), "Work"],
            env=environment(LD_PRELOAD=COLLECTOR, IKET_OUTPUT=self.output, IKET_RING_BYTES="lots"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        self.assertIn("iket: not traced: IKET_RING_BYTES=lots is no number of bytes", done.stderr)

    def test_a_limit_to_the_size_of_files(self):
        # Memory of the device is made of files: a failure that the program is told, not its death.
        line = f"ulimit -f 1000; '{APP}' '{self.image('marked.cubin')}' Work"
        code, out, err = self.run_("sh", "-c", line)
        self.assertNotEqual(code, 128 + signal.SIGXFSZ, err)
        self.assertEqual(out, "done\n", err)
        self.assertIn("iket: no rings for a context: cuMemCreate of 2 MiB: CUDA_ERROR_OUT_OF_MEMORY", err)

    def test_a_cubin_whose_program_headers_are_nowhere(self):
        # A linked one has some; without them it is loaded as well.
        with open(self.image("marked.cubin"), "rb") as file:
            cubin = bytearray(file.read())
        cubin[32:40] = (1 << 31).to_bytes(8, "little")  # e_phoff
        cubin[56:58] = bytes(2)  # e_phnum
        with open(self.cut, "wb") as file:
            file.write(cubin)
        code, out, err = self.app(self.cut)
        self.assertEqual((code, out), (0, "done\n"), err)
        self.check_whole()

    def test_a_fork_before_the_device_is_used(self):
        code, out, err = self.app("marked.cubin", "Work", "fork-first")
        self.assertEqual((code, out), (0, "done\ndone\n"), err)
        self.assertEqual(len(self.captures()), 2)

    def test_a_fork_after_the_device_was_used(self):
        code, out, err = self.app("marked.cubin", "Work", "fork-late")
        self.assertEqual(code, 0, err)
        self.assertEqual(out, "cuInit(0): CUDA_ERROR_NOT_INITIALIZED\n"
                              "the child ended with 1\ndone\n")
        self.assertEqual(err.count("iket-sim: this process was forked from one that had used the "
                                   "device"), 1, err)
        self.assertEqual(len(self.captures()), 1)


if __name__ == "__main__":
    unittest.main()
