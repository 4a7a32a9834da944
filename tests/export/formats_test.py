"""What .trace.json says equals what the model says, and a compressed export is its plain one."""

import collections
import glob
import gzip
import json
import os
import struct
import subprocess
import tempfile
import unittest

DUMP_MODEL = os.environ["IKET_DUMP_MODEL"]
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")

# The keys of files that run-iket 4.8.1 wrote, by object; those in brackets are there with a payload.
PAYLOAD = {"payloadType", "payloadVal"}
LAUNCH = {"blockDimX", "blockDimY", "blockDimZ", "contextId", "enabledCluster", "gridDimX", "gridDimY",
          "gridDimZ", "gridId", "kernelName", "markers", "ranges", "singleClusterActive", "warpLifetimes"}
MARKER = {"color", "locIdx", "markerNameIdx", "timestamp"}
RANGE = {"endTs", "internalEvents", "rangeColor", "rangeId", "rangeNameIdx", "rangeScope", "rangeType",
         "startTs", "warpLocIdxs"}
INTERNAL_EVENT = {"eventId", "timestamp"}
LIFETIME = {"endTs", "locIdx", "startTs"}
LOCATION = {"ctaId", "gpcId", "smId", "tpcId", "warpId"}
TOP = {"graphLaunches", "launches", "locationTable", "meta", "stringTable"}

# run-iket's numbers of payload types: how the bits read.
READ = {1: ("<B", "<b"), 2: ("<B", "<B"), 3: ("<H", "<h"), 4: ("<H", "<H"), 5: ("<I", "<i"), 6: ("<I", "<I"),
        7: ("<Q", "<q"), 13: ("<I", "<f"), 14: ("<Q", "<d"), 15: ("<Q", "<Q"), 16: ("<Q", "<Q")}


def fnv1a(text):
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def payload_of(event):
    if "payloadType" not in event:
        return None
    pack, unpack = READ[event["payloadType"]]
    value = struct.unpack(unpack, struct.pack(pack, event["payloadVal"]))[0]
    return "NaN" if value != value else value


def same_number(value):
    # JSON has no infinity: the dump says null for what is no number.
    return "NaN" if isinstance(value, float) and value != value else value


def range_ids_of(capture):
    """What run-iket says of the kernel of a capture foreign_NAME.iketcap."""
    name = os.path.basename(capture).removesuffix(".iketcap")
    if not name.startswith("foreign_"):
        return {}
    with open(os.path.join(DATA, "foreign", name.removeprefix("foreign_") + ".json"), encoding="utf-8") as file:
        warps = json.load(file)["events"]
    return {entry[0]: entry[2] for warp in warps for entry in warp["ranges"]}


class FormatsTest(unittest.TestCase):
    maxDiff = 4000

    def make(self, folder, *arguments):
        out = os.path.join(folder, "model")
        subprocess.run([DUMP_MODEL, *map(str, arguments), out], check=True)
        with open(out + ".json", encoding="utf-8") as file:
            model = json.load(file)
        with open(out + ".trace.json", encoding="utf-8") as file:
            return out, model, json.load(file)

    def check_keys(self, trace):
        self.assertEqual(set(trace), TOP)
        self.assertEqual(trace["meta"]["version"], 1)
        for launch in trace["launches"]:
            self.assertEqual(set(launch), LAUNCH)
            for marker in launch["markers"]:
                self.assertEqual(set(marker) - PAYLOAD - {"iketValues"}, MARKER)
            for entry in launch["ranges"]:
                self.assertEqual(set(entry), RANGE)
                for event in entry["internalEvents"]:
                    self.assertEqual(set(event) - PAYLOAD - {"iketValues"}, INTERNAL_EVENT)
            for lifetime in launch["warpLifetimes"]:
                self.assertEqual(set(lifetime), LIFETIME)
        for location in trace["locationTable"]:
            self.assertEqual(set(location), LOCATION)

    def check(self, model, trace, range_ids=None):
        """range_ids: by name, where another front end gave them."""
        range_ids = range_ids or {}
        self.check_keys(trace)
        self.assertIs(trace["meta"]["iket"]["simulated"], model["simulated"])
        names = trace["stringTable"]
        self.assertEqual(len(trace["launches"]), len(model["launches"]))
        expected, got = collections.Counter(), collections.Counter()
        # A place stands once in the table, however many launches had a warp there.
        warps = [(warp["sm"], -1 if warp["index"] is None else warp["index"],
                  "(0, 0, 0)" if warp["orphan"] else warp["cta"]) for warp in model["warps"]]
        places = [(place["smId"], place["warpId"], "({}, {}, {})".format(*place["ctaId"]))
                  for place in trace["locationTable"]]
        self.assertEqual(len(places), len(set(places)))
        self.assertEqual(set(places), set(warps))
        for entry in model["ranges"]:
            end = None if entry["unclosed"] else same_number(entry.get("end_payload"))
            expected[(warps[entry["warp"]], entry["name"], entry["begin"], entry["end"], not entry["unclosed"],
                      same_number(entry["payload"]), end)] += 1
        for mark in model["instants"]:
            if not mark["unmatched"]:
                name = "unknown event" if mark["unknown"] else mark["name"]
                expected[(warps[mark["warp"]], name, mark["ns"], same_number(mark["payload"]))] += 1
        for row, warp in enumerate(model["warps"]):
            expected[("life", warps[row], warp["begin"], warp["end"])] += 1
        unclosed = trace["meta"]["iket"]["unclosedRanges"]
        self.assertTrue(all(len(entry["internalEvents"]) == 1 for entry in unclosed))
        for launch in trace["launches"]:
            self.assertTrue(all(len(entry["internalEvents"]) == 2 for entry in launch["ranges"]))
        for launch in [*trace["launches"], {"ranges": unclosed, "markers": [], "warpLifetimes": []}]:
            for entry in launch["ranges"]:
                first, last = entry["internalEvents"][0], entry["internalEvents"][-1]
                closed = len(entry["internalEvents"]) == 2
                self.assertEqual(first["timestamp"], entry["startTs"])
                if closed:
                    self.assertEqual(last["timestamp"], entry["endTs"])
                    if entry["rangeType"] == 2:
                        self.assertEqual(last["eventId"], 31)
                    else:
                        self.assertEqual(last["eventId"], first["eventId"])
                self.assertNotEqual(first["eventId"], 31)
                name = names[entry["rangeNameIdx"]]
                self.assertEqual(entry["rangeId"], range_ids.get(name, fnv1a(name)))
                place = entry["warpLocIdxs"][0]
                self.assertEqual(entry["warpLocIdxs"], [place, place])
                got[(places[place], names[entry["rangeNameIdx"]], entry["startTs"], entry["endTs"], closed,
                     payload_of(first), payload_of(last) if closed else None)] += 1
            for marker in launch["markers"]:
                got[(places[marker["locIdx"]], names[marker["markerNameIdx"]], marker["timestamp"],
                     payload_of(marker))] += 1
            for lifetime in launch["warpLifetimes"]:
                got[("life", places[lifetime["locIdx"]], lifetime["startTs"], lifetime["endTs"])] += 1
        missing, surplus = expected - got, got - expected
        self.assertFalse(missing or surplus, f"{len(missing)} missing, such as {list(missing)[:2]}; "
                                             f"{len(surplus)} surplus, such as {list(surplus)[:2]}")

    def test_synthetic_models(self):
        for seed in range(1, 8):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                _, model, trace = self.make(folder, "synthetic", seed, 3, 8, 60, 1000)
                self.check(model, trace)

    def test_a_software_device(self):
        with tempfile.TemporaryDirectory() as folder:
            _, model, trace = self.make(folder, "simulated", 1, 3, 8, 60, 1000)
            self.check(model, trace)
            self.assertIs(trace["meta"]["iket"]["simulated"], True)

    def test_rings_with_random_words(self):
        with tempfile.TemporaryDirectory() as folder:
            _, model, trace = self.make(folder, "noisy", 3, 1000)
            self.check(model, trace)
            self.assertTrue(any(trace["meta"]["iket"]["counters"].values()))

    def test_captures_of_a_gpu(self):
        captures = glob.glob(os.path.join(DATA, "h200", "*.iketcap"))
        self.assertTrue(captures)
        for capture in captures:
            with self.subTest(capture=capture), tempfile.TemporaryDirectory() as folder:
                _, model, trace = self.make(folder, "capture", capture, 100000)
                self.check(model, trace, range_ids_of(capture))
                self.assertIn("H200", trace["meta"]["iket"]["devices"][0])

    def test_compressed_is_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            # Several members: more than 4 MiB.
            out, _, _ = self.make(folder, "synthetic", 1, 3, 200, 400, 200000)
            self.assertGreater(os.path.getsize(out + ".trace.json"), 5 << 20)
            for format_name in ("pftrace", "trace.json"):
                with open(f"{out}.{format_name}", "rb") as plain, gzip.open(f"{out}.{format_name}.gz") as packed:
                    self.assertEqual(packed.read(), plain.read(), format_name)
                self.assertLess(os.path.getsize(f"{out}.{format_name}.gz"),
                                os.path.getsize(f"{out}.{format_name}") / 2)


if __name__ == "__main__":
    unittest.main()
