"""What run-iket recorded: read from its raw folder, and written as it writes it."""

import copy
import json
import os
import shutil

import harness

DATA = os.path.join(harness.SOURCE_DIR, "tests", "data", "run-iket")
FOLDERS = ("cpp", "ranges", "tilelang-payload", "types", "warp-trace")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def key(value):
    return json.dumps(value, sort_keys=True)


def resolved(trace):
    """The same without the order of rows: indices replaced by what they refer to, lists sorted."""
    trace = copy.deepcopy(trace)
    places, names = trace.pop("locationTable"), trace.pop("stringTable")

    def resolve(launch):
        for row in launch["ranges"]:
            row["rangeNameIdx"] = names[row["rangeNameIdx"]]
            row["warpLocIdxs"] = [places[i] for i in row["warpLocIdxs"]]
        for row in launch["markers"]:
            row["markerNameIdx"] = names[row["markerNameIdx"]]
            row["locIdx"] = places[row["locIdx"]]
        for row in launch["warpLifetimes"]:
            row["locIdx"] = places[row["locIdx"]]
        for rows in ("ranges", "markers", "warpLifetimes"):
            launch[rows].sort(key=key)

    for launch in trace["launches"]:
        resolve(launch)
    for launches in trace["graphLaunches"].values():
        for launch in launches:
            resolve(launch)
    trace["locationTable"] = sorted(places, key=key)
    trace["stringTable"] = sorted(names)
    return trace


class ForeignTest(harness.CliTest):
    maxDiff = 4000

    def run_of(self, folder):
        return os.path.join(DATA, folder, "iket.data.json")

    def export(self, folder):
        out = self.path(folder + ".trace.json")
        result = self.iket("export", self.run_of(folder), "-o", out)
        self.assertEqual((result.code, result.err), (0, ""))
        return load(out)

    def test_the_export_is_run_ikets_own(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                ours, theirs = self.export(folder), load(os.path.join(DATA, folder, "trace.json"))
                # This alone is ours, and all else equal: keys, types and values.
                self.assertEqual(set(ours["meta"]), {"iket", "version"})
                ours["meta"].pop("iket")
                self.assertEqual(key(resolved(ours)), key(resolved(theirs)))
                self.assertEqual(list(ours), list(theirs))
                # The order, too, where it is one: run-iket has what begins at one time in any order.
                self.assertEqual(ours["locationTable"], theirs["locationTable"])
                for our, their in zip(ours["launches"], theirs["launches"]):
                    self.assertEqual(our["warpLifetimes"], their["warpLifetimes"])
                    self.assertEqual([(row["locIdx"], ours["stringTable"][row["markerNameIdx"]])
                                      for row in our["markers"]],
                                     [(row["locIdx"], theirs["stringTable"][row["markerNameIdx"]])
                                      for row in their["markers"]])
                    self.assertEqual([(row["warpLocIdxs"], row["startTs"]) for row in our["ranges"]],
                                     [(row["warpLocIdxs"], row["startTs"]) for row in their["ranges"]])

    def test_rows_of_a_warp_stand_in_the_order_of_their_begins(self):
        for folder in FOLDERS:
            for launch in self.export(folder)["launches"]:
                last = {}
                for row in launch["ranges"]:
                    place = row["warpLocIdxs"][0]
                    self.assertLessEqual(last.get(place, 0), row["startTs"])
                    last[place] = row["startTs"]

    def test_every_reading_command_takes_it(self):
        run = self.run_of("ranges")
        report = self.iket("report", "--json", run)
        self.assertEqual((report.code, report.err), (0, ""))
        rows = {row["name"]: row for row in report.json()["ranges"]}
        self.assertEqual(rows["tile"]["n"], 20)
        self.assertIn("run-iket does not name", self.iket("report", run).out)
        info = self.iket("info", "--json", run).json()
        self.assertEqual(info["kind"], "run-iket")
        self.assertEqual([kernel["sites"] for kernel in info["kernels"]], [18])
        self.assertIn("a run of run-iket's", self.iket("info", run).out)
        checked = self.iket("check", run)
        self.assertEqual(checked.code, 0, checked.out)
        self.assertIn("sound: 16 warps, 292 records", checked.out)
        exported = self.iket("export", run, "-o", self.path("x.pftrace"))
        self.assertEqual(exported.code, 0, exported.err)
        self.assertIn("sound", self.iket("check", self.path("x.pftrace")).out)

    def test_it_is_known_by_what_is_in_it(self):
        shutil.copytree(os.path.join(DATA, "types"), self.path("run"))
        os.rename(self.path("run", "iket.data.json"), self.path("run", "x.iketcap"))
        result = self.iket("export", self.path("run", "x.iketcap"))
        self.assertEqual(result.code, 0, result.err)
        self.assertTrue(os.path.exists(self.path("run", "x.pftrace")))

    def test_the_process_is_that_of_the_folder(self):
        shutil.copytree(os.path.join(DATA, "cpp"), self.path("pid_0x1f"))
        out = self.path("x.trace.json")
        self.iket("export", self.path("pid_0x1f", "iket.data.json"), "-o", out)
        self.assertEqual(load(out)["meta"]["iket"]["processId"], 0x1F)

    def test_buffers_that_are_not_there(self):
        shutil.copytree(os.path.join(DATA, "cpp"), self.path("run"))
        os.remove(self.path("run", "iket.data.bin"))
        result = self.iket("export", self.path("run", "iket.data.json"))
        self.assert_one_line(result, 3)
        self.assertIn("iket.data.bin: cannot open the file of warp buffers", result.err)

    def test_buffers_that_are_cut(self):
        shutil.copytree(os.path.join(DATA, "ranges"), self.path("run"))
        os.truncate(self.path("run", "iket.data.bin"), 272 * 3 + 100)
        result = self.iket("report", self.path("run", "iket.data.json"))
        self.assertEqual(result.code, 3)
        self.assertIn("damaged: ", result.err)
        self.assertIn("3, 0 without begin, 0 without end, 13 missing", result.out)

    def test_a_file_that_says_what_nobody_knows(self):
        shutil.copytree(os.path.join(DATA, "cpp"), self.path("run"))
        run = load(self.path("run", "iket.data.json"))
        run["launches"][0]["patchOptions"]["timerSource"] = 2
        with open(self.path("run", "iket.data.json"), "w", encoding="utf-8") as file:
            json.dump(run, file)
        for command in ("report", "export", "check", "info"):
            result = self.iket(command, self.path("run", "iket.data.json"))
            self.assert_one_line(result, 3)
            self.assertIn("launch 0 has timerSource 2; only 0, %globaltimer, is known", result.err)

    def test_nothing_was_recorded(self):
        shutil.copytree(os.path.join(DATA, "cpp"), self.path("run"))
        run = load(self.path("run", "iket.data.json"))
        run["launches"][0]["canDecode"] = False
        with open(self.path("run", "iket.data.json"), "w", encoding="utf-8") as file:
            json.dump(run, file)
        result = self.iket("report", self.path("run", "iket.data.json"))
        self.assertEqual(result.code, 4)
        self.assertIn("run-iket recorded no warp", result.err)


if __name__ == "__main__":
    harness.unittest.main()
