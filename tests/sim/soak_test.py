"""A long random program, unprofiled and profiled: the same results, every launch accounted for, no growth.

On the software device, or with IKET_TEST_DEVICE=gpu on a GPU. IKET_SOAK_SEEDS, IKET_SOAK_FIRST and
IKET_SOAK_ACTIONS say how long. With IKET_SOAK_LOG each run appends to that file a line of JSON: what it did, by
how much its memory grew, and what `iket profile` had after a third of its time and at most since (tools/gpu/soak.sh
reads it)."""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

IKET = os.environ["IKET"]
SOAK = os.environ["IKET_SIM_SOAK"]
IMAGES = os.environ["IKET_SIM_APP_IMAGES"]
DEVICE = os.environ.get("IKET_TEST_DEVICE", "sim")
SEEDS = int(os.environ.get("IKET_SOAK_SEEDS", "4"))
FIRST = int(os.environ.get("IKET_SOAK_FIRST", "1"))
ACTIONS = os.environ.get("IKET_SOAK_ACTIONS", "20000")
LOG = os.environ.get("IKET_SOAK_LOG", "")
# KiB of host and device memory by which the program may grow. A driver keeps some of the host's for itself; and
# `iket profile` makes a CUDA context of its own when it first reads somebody's rings.
GROWTH = ("65536", "1048576") if DEVICE == "gpu" else ()


def plain_environment():
    if DEVICE == "gpu":
        return None
    return {**os.environ, "LD_LIBRARY_PATH": os.environ["IKET_SIM"]}


class Memory:
    """What a process has resident without its files, in MB, from time to time."""

    def __init__(self, pid):
        self.pid = pid
        self.samples = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        began = time.monotonic()
        while not self.ended.wait(0.1):
            try:
                with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
                    resident, of_files = (int(word) for word in file.read().split()[1:3])
            except OSError:
                return
            size = (resident - of_files) * os.sysconf("SC_PAGESIZE")
            if size > 0:  # 0 of one that has ended and is not yet waited for
                self.samples.append((time.monotonic() - began, size / 1e6))

    def stop(self):
        """(after a third of the time, the most since then)."""
        self.ended.set()
        self.thread.join()
        if not self.samples:
            return 0.0, 0.0
        third = self.samples[-1][0] / 3
        later = [size for when, size in self.samples if when >= third]
        return later[0], max(later)


def run(*words, memory=None, **more):
    """With a list as `memory`, what the program's own process had goes there."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more) as process:
        watched = Memory(process.pid) if memory is not None else None
        try:
            output, errors = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            if watched:
                memory += watched.stop()
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


class Soak(unittest.TestCase):
    def test_results_are_those_of_an_unprofiled_run(self):
        for seed in range(FIRST, FIRST + SEEDS):
            words = (SOAK, IMAGES, str(seed), ACTIONS, *GROWTH)
            plain = run(*words, env=plain_environment())
            self.assertEqual(plain.returncode, 0, plain.stdout + plain.stderr)
            found = re.fullmatch(r"values \w+ launches (\d+) records (\d+) children (\d+)\n", plain.stdout)
            self.assertIsNotNone(found, plain.stdout)
            launches, records, children = (int(number) for number in found.groups())
            for how in ("keep-last", "stream"):
                with self.subTest(seed=seed, overflow=how), tempfile.TemporaryDirectory() as folder:
                    output = os.path.join(folder, "out")
                    options = ("--device", DEVICE, "--export", "none", "--ring", "256K", "--overflow", how)
                    memory = []
                    done = run(IKET, "profile", *options, "-o", output, "--", *words, memory=memory)
                    self.assertEqual(done.stdout, plain.stdout, done.stderr)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    try:
                        lost = self.check(output, launches, records, children)
                    except AssertionError:
                        self.keep(output, f"seed-{seed}-{how}")
                        raise
                    self.log(seed=seed, overflow=how, launches=launches, records=records, lost=lost,
                             children=children, grown_kib=self.grown(done.stderr), third_mb=memory[0],
                             most_mb=memory[1])

    def keep(self, output, name):
        """The captures of a run that is not right, beside the log."""
        if LOG:
            shutil.copytree(output, os.path.join(os.path.dirname(LOG), name), dirs_exist_ok=True)

    def grown(self, errors):
        """[host, device], by the program's own word."""
        found = re.search(r"^soak: grew by (-?\d+) KiB of host and (-?\d+) KiB of device memory$", errors, re.MULTILINE)
        self.assertIsNotNone(found, errors)
        return [int(number) for number in found.groups()]

    def log(self, **of_run):
        if LOG:
            with open(LOG, "a", encoding="utf-8") as file:
                file.write(json.dumps(of_run) + "\n")

    def check(self, output, launches, records, children):
        """The captures of a run; returns how many records were lost."""
        reports = []
        for capture in glob.glob(os.path.join(output, "*.iketcap")):
            done = run(IKET, "report", "--json", capture)
            self.assertEqual(done.returncode, 0, done.stderr)
            reports.append(json.loads(done.stdout))
        self.assertEqual(len(reports), children + 1)
        reports.sort(key=lambda report: -report["trust"]["launches"]["all"])
        trust = reports[0]["trust"]
        counters = trust["counters"]
        # Every record is kept or counted as lost, and none is of nobody.
        self.assertEqual(counters["records_written"], records)
        self.assertEqual(counters["records_kept"] + counters["records_lost"], records)
        for fault in ("lost_is_lower_bound", "suspect_rings", "unknown_records", "unmatched_ends", "unclosed_ranges"):
            self.assertEqual(counters[fault], 0, fault)
        if counters["records_lost"] == 0:
            self.assertEqual(trust["warps"], 4 * launches)
            # Each is known for itself, nodes of replays too.
            self.assertEqual(trust["launches"]["all"], launches)
            self.assertEqual(trust["launches"]["complete"], launches)
            self.assertEqual(trust["launches"]["replays_known"], trust["launches"]["by_graphs"])
        for report in reports[1:]:
            (launch,) = report["standstill"]
            self.assertEqual(launch["kernel"], "Trap")
            self.assertIn(launch["warps_running"], (1, 2))  # the second may not have begun
            self.assertEqual(launch["groups"][0]["last_event"], "about to trap")
        return counters["records_lost"]


if __name__ == "__main__":
    unittest.main()
