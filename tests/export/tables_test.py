"""What .csv, .sqlite and .chrome.json say equals what the model says, number by number."""

import collections
import csv
import glob
import json
import os
import re
import sqlite3
import struct
import subprocess
import tempfile
import unittest

DUMP_MODEL = os.environ["IKET_DUMP_MODEL"]
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
DOCUMENT = os.path.join(HERE, "..", "..", "docs", "export.md")


def number(value):
    """A payload as it reads: floats by their 32 bits, as some are no more than that."""
    if value in (None, ""):
        return None
    if isinstance(value, str):
        value = int(value) if re.fullmatch(r"-?\d+", value) else float(value)
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1 << 24:
            return int(value)  # the dump writes 3 for 3.0
        if value != value or value in (float("inf"), float("-inf")):
            return "no number"
        try:
            return struct.pack("<f", value)
        except OverflowError:
            return value
    return value


def of_dump(value):
    # JSON has neither infinity nor NaN: the dump says null for them.
    return number(value)


def whole(cell):
    return int(cell) if cell != "" else None


class TablesTest(unittest.TestCase):
    maxDiff = 4000

    def make(self, *arguments):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        out = os.path.join(folder.name, "model")
        subprocess.run([DUMP_MODEL, *map(str, arguments), out], check=True)
        with open(out + ".json", encoding="utf-8") as file:
            return out, json.load(file)

    def models(self):
        for seed in range(1, 6):
            yield f"synthetic {seed}", self.make("synthetic", seed, 3, 8, 60, 1000)
        yield "edges", self.make("edges", 1, 3, 8, 60, 1000)
        yield "many CTAs", self.make("synthetic", 2, 1, 2100, 6, 100000)
        yield "noisy", self.make("noisy", 3, 1000)
        captures = glob.glob(os.path.join(DATA, "h200", "*.iketcap"))
        self.assertTrue(captures)
        for capture in captures:
            yield capture, self.make("capture", capture, 100000)

    def expected(self, model):
        """Ranges and marks by what all three formats can say of them; times from the first moment."""
        origin = min(warp["begin"] for warp in model["warps"])
        ranges = collections.Counter(
            (entry["warp"], entry["name"], entry["begin"], entry["end"],
             entry["end_cycles"] - entry["begin_cycles"], entry["depth"], entry["crossed"], entry["token"],
             entry["unclosed"], of_dump(entry["payload"]), of_dump(entry.get("end_payload")))
            for entry in model["ranges"])
        marks = collections.Counter(
            (mark["warp"], mark["unmatched"], mark["ns"], mark["cycles"], of_dump(mark["payload"]))
            for mark in model["instants"])
        return origin, ranges, marks

    def assert_same(self, got, expected):
        # "no number" of ours is null in the dump.
        def plain(counter):
            return collections.Counter({tuple(None if cell == "no number" else cell for cell in key): count
                                        for key, count in counter.items()})
        missing, surplus = plain(expected) - plain(got), plain(got) - plain(expected)
        self.assertFalse(missing or surplus, f"{len(missing)} missing, such as {list(missing)[:2]}; "
                                             f"{len(surplus)} surplus, such as {list(surplus)[:2]}")

    def test_csv(self):
        for name, (out, model) in self.models():
            with self.subTest(name):
                with open(out + ".csv", encoding="utf-8", newline="") as file:
                    rows = list(csv.DictReader(file, strict=True))
                facts = {row["name"]: row["payload"] for row in rows if row["kind"] == "fact"}
                origin = int(facts["origin_ns"])
                _, expected_ranges, expected_marks = self.expected(model)
                # Rows of warps come launch by launch, as the model's do.
                ranges, marks, warp = collections.Counter(), collections.Counter(), -1
                for row in rows:
                    start = whole(row["start_ns"])
                    if row["kind"] == "warp":
                        warp += 1
                        dumped = model["warps"][warp]
                        self.assertEqual(start + origin, dumped["begin"])
                        self.assertEqual(whole(row["end_ns"]) + origin, dumped["end"])
                        self.assertEqual(whole(row["duration_cycles"]), dumped["cycles"])
                        self.assertEqual(whole(row["sm"]), dumped["sm"])
                        self.assertEqual(whole(row["warp"]), dumped["index"])
                        if not dumped["orphan"]:
                            cta = "({cta_x}, {cta_y}, {cta_z})".format(**row)
                            self.assertEqual(cta, dumped["cta"])
                    elif row["kind"] == "range":
                        ranges[(warp, row["name"], start + origin, whole(row["end_ns"]) + origin,
                                whole(row["duration_cycles"]), whole(row["depth"]), "crossed" in row["state"],
                                "token" in row["state"], "unclosed" in row["state"], number(row["payload"]),
                                number(row["end_payload"]))] += 1
                    elif row["event"] != "":
                        marks[(warp, row["kind"] == "unmatched_end", start + origin, whole(row["start_cycles"]),
                               number(row["payload"]))] += 1
                self.assertEqual(warp + 1, len(model["warps"]))
                self.assert_same(ranges, expected_ranges)
                self.assert_same(marks, expected_marks)
                self.check_values(rows, model)

    def check_values(self, rows, model):
        """All values of each mark, by name."""
        by_event = {whole(row["event"]): row for row in rows if row["kind"] not in ("range", "fact") and row["event"]}
        for mark in model["instants"]:
            values = json.loads(by_event[mark["event"]]["values"] or "{}")
            more = [number(entry["value"]) for entry in mark["payload_more"]]
            got = [number(value) for value in values.values()]
            got = [None if value == "no number" else value for value in got]
            self.assertEqual(got[len(got) - len(more):], more)
            if mark["payload_name"] and mark["payload"] is not None:
                self.assertEqual(number(values[mark["payload_name"]]), number(mark["payload"]))

    def test_sqlite(self):
        for name, (out, model) in self.models():
            with self.subTest(name):
                database = sqlite3.connect(out + ".sqlite")
                self.addCleanup(database.close)
                self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
                self.assertEqual(database.execute("PRAGMA foreign_key_check").fetchall(), [])
                (origin,), = database.execute("SELECT origin_ns FROM capture")
                _, expected_ranges, expected_marks = self.expected(model)
                ranges = collections.Counter(
                    (warp, name, start + origin, end + origin, cycles, depth, bool(crossed), bool(token), not closed,
                     number(payload), number(end_payload))
                    for warp, name, start, end, cycles, depth, crossed, token, closed, payload, end_payload in
                    database.execute("SELECT warp_id, name, start_ns, end_ns, duration_cycles, depth, crossed, "
                                     "token, closed, payload, end_payload FROM slices"))
                self.assert_same(ranges, expected_ranges)
                marks = collections.Counter(
                    (warp, kind == "unmatched_end", ns + origin, cycles, number(payload))
                    for warp, kind, ns, cycles, payload in
                    database.execute("SELECT warp_id, kind, ns, cycles, payload FROM instants"))
                self.assert_same(marks, expected_marks)
                flows = sorted(database.execute("SELECT source, target FROM flow"))
                self.assertEqual(flows, sorted((flow["from"], flow["to"]) for flow in model["flows"]))
                faults = dict(database.execute("SELECT value || ' ' || meaning, 1 FROM counter WHERE fault AND value"))
                self.assertEqual(set(faults), set(model["faults"]))
                for (warp, sm, begin, end), dumped in zip(
                        database.execute("SELECT warp, sm, start_ns, end_ns FROM warp ORDER BY id"), model["warps"],
                        strict=True):
                    self.assertEqual((warp, sm, begin + origin, end + origin),
                                     (dumped["index"], dumped["sm"], dumped["begin"], dumped["end"]))

    def test_chrome_json(self):
        for name, (out, model) in self.models():
            with self.subTest(name):
                with open(out + ".chrome.json", encoding="utf-8") as file:
                    trace = json.load(file)
                origin = int(trace["otherData"]["origin_ns"])

                def ns(micros):
                    return round(micros * 1000)

                slices, marks = collections.Counter(), collections.Counter()
                for event in trace["traceEvents"]:
                    if event["pid"] == 0:
                        continue
                    args = event.get("args", {})
                    if event["ph"] == "X" and event["name"] != "Warp Life Time":
                        slices[(event["pid"] - 1, event["name"], ns(event["ts"]) + origin, ns(event["dur"]),
                                args["cycles"])] += 1
                    elif event["ph"] == "i":
                        marks[(event["pid"] - 1, ns(event["ts"]) + origin)] += 1
                launch_of = [warp["launch"] for warp in model["warps"]]
                self.assert_same(slices, collections.Counter(
                    (launch_of[entry["warp"]], entry["name"], entry["begin"], entry["end"] - entry["begin"],
                     entry["end_cycles"] - entry["begin_cycles"]) for entry in model["ranges"]))
                self.assert_same(marks, collections.Counter(
                    (launch_of[mark["warp"]], mark["ns"]) for mark in model["instants"]))
                arrows = collections.Counter(event["ph"] for event in trace["traceEvents"])
                self.assertEqual(arrows["s"], arrows["f"])
                self.assertGreaterEqual(arrows["s"], len(model["flows"]))

    def test_the_queries_of_the_document(self):
        with open(DOCUMENT, encoding="utf-8") as file:
            queries = re.findall(r"```sql\n(.*?)```", file.read(), re.DOTALL)
        self.assertGreaterEqual(len(queries), 5)
        out, _ = self.make("edges", 1, 3, 8, 60, 1000)
        database = sqlite3.connect(out + ".sqlite")
        self.addCleanup(database.close)
        for query in queries:
            for statement in filter(str.strip, query.split(";")):
                with self.subTest(statement):
                    self.assertTrue(database.execute(statement).fetchall())


if __name__ == "__main__":
    unittest.main()
