#!/usr/bin/env python3
"""Two readers that were written apart from each other, from docs/format.md, agree.

iketcap.py against the C++ reader (capture_dump), on the kept files and on hundreds of damaged forms
of them. usage: iketcap_test.py CAPTURE_DUMP DATA_FOLDER
"""
import dataclasses
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

import iketcap

DUMP = ""
DATA = pathlib.Path()


def python_view(data):
    try:
        return json.loads(json.dumps(dataclasses.asdict(iketcap.read(data))))
    except iketcap.NotACapture:
        return None


def cpp_views(files):
    """What capture_dump says about the bytes `files`."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, data in enumerate(files):
            names.append(f"{folder}/{number}.iketcap")
            pathlib.Path(names[-1]).write_bytes(data)
        output = subprocess.run([DUMP, *names], check=True, capture_output=True).stdout
    return [json.loads(line) for line in output.decode().splitlines()]


def damaged(data, rng):
    """`data` with an accident: bits flipped, zeros, a piece missing, doubled, or the end gone."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at, length = rng.randrange(len(data)), rng.choice([1, 4, 8, 40, 200])
        how = rng.randrange(6)
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            data[at:at + length] = bytes(len(data[at:at + length]))
        elif how == 2:
            del data[at:at + length]
        elif how == 3:
            data[at:at] = data[at:at + 200]
        elif how == 4:
            reseal(data, at, rng)
        else:
            del data[max(at, 1):]
    return bytes(data)


def reseal(data, near, rng):
    """Changes a payload byte after `near`, or a length, and makes the checksums right again: contents
    against the rules, which only the decoders can see."""
    for at in range(near & ~7, len(data) - 40, 8):
        header = iketcap._right_header(bytes(data), at)
        if not header or at + 40 + header[3] > len(data):
            continue
        kind, version, codec, stored, raw, sequence, reserved, _, _ = header
        if stored and rng.random() < 0.9:
            place = min(rng.choice([rng.randrange(stored), rng.randrange(16)]), stored - 1)
            data[at + 40 + place] = rng.choice([0, 1, 255, rng.randrange(256)])
        else:
            raw += rng.choice([-1, 1, 1 << 40])
        crc = iketcap.crc32c(data[at + 40:at + 40 + stored])
        body = struct.pack("<4sHHQQIII", kind, version, codec, stored, max(raw, 0), sequence,
                           reserved, crc)
        data[at:at + 40] = body + struct.pack("<I", iketcap.crc32c(body))
        return


class Agreement(unittest.TestCase):
    maxDiff = 2000

    def kept(self):
        files = sorted(DATA.glob("*.iketcap"))
        self.assertGreaterEqual(len(files), 5)
        return files

    def test_kept_files(self):
        files = self.kept()
        for file, cpp in zip(files, cpp_views([file.read_bytes() for file in files])):
            with self.subTest(file.name):
                self.assertIsNotNone(cpp)
                self.assertEqual(cpp, python_view(file.read_bytes()))

    def test_damaged_files(self):
        rng = random.Random(4711)
        originals = [file.read_bytes() for file in self.kept()]
        files = [damaged(rng.choice(originals), rng) for _ in range(400)]
        malformed = 0
        for number, (data, cpp) in enumerate(zip(files, cpp_views(files))):
            self.assertEqual(cpp, python_view(data), f"damaged file {number}")
            malformed += cpp["damage"]["chunks_malformed"] if cpp else 0
        self.assertGreater(malformed, 20)  # else the accidents do not reach the decoders


class Witness(unittest.TestCase):
    """Values by hand, so that the two readers cannot be wrong together."""

    def test_crc32c(self):
        self.assertEqual(iketcap.crc32c(b"123456789"), 0xE3069283)

    def test_contents(self):
        capture = iketcap.read((DATA / "raw.iketcap").read_bytes())
        self.assertEqual(capture.damage, iketcap.Damage(chunks_whole=26, cut=False))
        self.assertEqual(capture.sessions[0]["command_line"],
                         ["./app", "--size", "4096", "", "naïve"])
        self.assertEqual(capture.devices[0]["uuid"], "0102030405060708090a0b0c0d0e0f10")
        self.assertEqual(capture.devices[0]["topology"], [[0, 0], [0, 0], [9, 1], [-1, -1]])
        self.assertEqual(capture.kernels[0]["demangled_name"], "gemm(float*, float*, int)")
        self.assertEqual(capture.kernels[0]["registers_after"], 170)
        self.assertEqual(capture.declarations[1]["name"], "k\\xff\\xc3")
        self.assertEqual(capture.launches[3]["context"], 0xFFFFFFFF)
        self.assertEqual([launch["failed"] for launch in capture.launches],
                         [False, False, False, True, False])
        self.assertEqual(capture.graph_nodes[3], {
            "graph": 1, "node": 0xFFFFFFFF, "since": 3 << 33, "kernel": 10, "grid": [132, 2, 1],
            "block": [384, 1, 2], "cluster": [2, 1, 1], "dynamic_shared_bytes": 1024,
            "cooperative": False, "ordered": False, "disabled": False, "uncounted": True,
            "conditional": False})
        self.assertEqual(capture.graph_launches[2], {
            "sequence": 7, "stream": 0x7F0000001002, "host_ns": 5_200_000_002, "graph": 1,
            "context": 2, "captured": True, "failed": False, "left_out": False})
        self.assertEqual(capture.counters[1], {"name": "ring.suspect", "value": 1 << 40})
        ring = capture.rings[0]["rings"][1]
        self.assertEqual((ring["ring"], ring["written"], ring["first"]), (65, 1200, 1104))
        self.assertEqual(ring["records"][3], [1003, 0x1234567, 65, 3])

    def test_what_is_left_out(self):
        """Fields that the kept files have no value in."""
        header = struct.Struct("<4I")
        kern = header.pack(16, 1, 48, 0) + struct.pack("<4IB3xI2H5I", 7, 1, 0, 0, 3, 0, 40, 40, 6, 0, 512, 6, 0)
        ((_, kernel),) = iketcap.kernels(kern, iketcap.Strings())
        self.assertEqual((kernel["state"], kernel["sites"], kernel["static_shared_bytes"], kernel["sites_left_out"]),
                         (3, 6, 512, 6))
        decl = header.pack(16, 2, 32, 0) + b"".join(
            struct.pack("<2I2B2x5I", 1, event, 1, 0, 0, 0xFFFFFFFF, 0, 42, flags) for event, flags in ((5, 1), (6, 2)))
        self.assertEqual([(row["event"], row["line"], row["left_out"])
                          for _, row in iketcap.declarations(decl, iketcap.Strings())], [(5, 42, True), (6, 42, False)])

    def test_layout(self):
        """Field by field at the offsets of docs/format.md, without any reader."""
        data = (DATA / "raw.iketcap").read_bytes()
        self.assertEqual(struct.unpack_from("<8s6I", data), (
            b"iketcap\0", 1, 32, 0, 0, 0, iketcap.crc32c(data[:28])))
        self.assertEqual(data[32:40], b"STRS\1\0\0\0")
        kern = data.index(b"KERN")
        self.assertEqual(kern % 8, 0)
        self.assertEqual(struct.unpack_from("<4I", data, kern + 40), (16, 2, 48, 0))
        row = kern + 56
        self.assertEqual(struct.unpack_from("<II", data, row), (7, 1))
        self.assertEqual(data[row + 16], 1)
        self.assertEqual(struct.unpack_from("<HHIII", data, row + 24), (168, 170, 12, 1, 1024))


if __name__ == "__main__":
    DUMP, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
