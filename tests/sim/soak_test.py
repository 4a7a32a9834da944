"""A long random program, unprofiled and profiled: the same results, every launch accounted for, no growth.

IKET_SOAK_SEEDS and IKET_SOAK_ACTIONS make it longer."""

import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

IKET = os.environ["IKET"]
SOAK = os.environ["IKET_SIM_SOAK"]
IMAGES = os.environ["IKET_SIM_APP_IMAGES"]
SEEDS = int(os.environ.get("IKET_SOAK_SEEDS", "4"))
ACTIONS = os.environ.get("IKET_SOAK_ACTIONS", "20000")


def run(*words, **more):
    return subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, check=False, **more
    )


class Soak(unittest.TestCase):
    def test_results_are_those_of_an_unprofiled_run(self):
        for seed in range(1, SEEDS + 1):
            words = (SOAK, IMAGES, str(seed), ACTIONS)
            plain = run(*words, env={**os.environ, "LD_LIBRARY_PATH": os.environ["IKET_SIM"]})
            self.assertEqual(plain.returncode, 0, plain.stdout)
            found = re.fullmatch(r"values \w+ launches (\d+) records (\d+) children (\d+)\n", plain.stdout)
            self.assertIsNotNone(found, plain.stdout)
            launches, records, children = (int(number) for number in found.groups())
            for how in ("keep-last", "stream"):
                with self.subTest(seed=seed, overflow=how), tempfile.TemporaryDirectory() as folder:
                    output = os.path.join(folder, "out")
                    options = ("--device", "sim", "--export", "none", "--ring", "256K", "--overflow", how)
                    done = run(IKET, "profile", *options, "-o", output, "--", *words)
                    self.assertEqual(done.stdout, plain.stdout, done.stderr)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.check(output, launches, records, children)

    def check(self, output, launches, records, children):
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
            self.assertEqual(trust["launches"]["partial"], 0)
        for report in reports[1:]:
            (launch,) = report["standstill"]
            self.assertEqual(launch["kernel"], "Trap")
            self.assertIn(launch["warps_running"], (1, 2))  # the second may not have begun
            self.assertEqual(launch["groups"][0]["last_event"], "about to trap")


if __name__ == "__main__":
    unittest.main()
