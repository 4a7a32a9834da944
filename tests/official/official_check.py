#!/usr/bin/env python3
"""Does a trace have what official.cu marks, no less and no more?

    official_check.py TRACE [--extended]
    official_check.py --iket IKET --program official --out FOLDER

TRACE is a .trace.json, run-iket's or ours, of a run of `official`, `official_extended` (--extended), or of its kernel on
the software device; the second form makes one. Ends with 1 and a line for each difference.
"""
import argparse
import collections
import struct
import sys

import collected

N = 3  # of the launch
WARPS = [((cta, 0, 0), warp) for cta in (0, 1) for warp in (0, 1)]
SIZES = {1: 8, 2: 8, 3: 16, 4: 16, 5: 32, 6: 32, 7: 64, 13: 32, 14: 64, 15: 64, 16: 64}
ANY = None  # a value that nobody can foresee
START_END, PUSH_POP = 1, 2


def bits(form, value):
    return int.from_bytes(struct.pack("<" + form, value), "little")


MARKS = [("plain", 0, 0), ("i8", 1, -8 * N), ("u8", 2, 200 + N), ("i16", 3, -1600 * N), ("u16", 4, 60000 + N),
         ("i32", 5, -N), ("u32", 6, 4000000000 + N), ("i64", 7, -0x100000001 * N), ("u64", 16, 0x8000000000000001 + N),
         ("f32", 13, bits("f", -0.25 * N)), ("f64", 14, bits("d", 6.5 * N)), ("pointer", 15, ANY),
         *(("even k", 5, k) for k in range(0, N, 2))]
# Name, type, payload's type, and its value at both ends.
RANGES = [("life", START_END, 0, 0, 0), ("outer", PUSH_POP, 5, N, 0), *[("span", START_END, 0, 0, 0)] * N,
          *(("tile", START_END, 5, k, k + 10) for k in range(N)), *(("mma", PUSH_POP, 5, k, 0) for k in range(N))]


def lanes(warp):
    return [("odd lane", 6, 32 * warp + 1), ("even lane", 6, 32 * warp)]


def value(form, number):
    return number if number is ANY else number & ((1 << SIZES[form]) - 1) if form else 0


class Check:
    def __init__(self, trace):
        self.trace, self.differences = trace, []

    def payload(self, event):
        return event.get("payloadType", 0), event.get("payloadVal", 0)

    def warp(self, index):
        place = self.trace["locationTable"][index]
        return tuple(place["ctaId"]), place["warpId"]

    def compare(self, what, warp, expected, found):
        for row in (expected - found).elements():
            self.differences.append(f"CTA {warp[0]}, warp {warp[1]}: {what} {row} is missing")
        for row in (found - expected).elements():
            self.differences.append(f"CTA {warp[0]}, warp {warp[1]}: {what} {row} is not expected")

    def run(self, extended):
        names = self.trace["stringTable"]
        launches = [launch for launch in self.trace["launches"] if launch["kernelName"] == "Forms"]
        if len(launches) != 1 or len(self.trace["launches"]) != 1:
            self.differences.append(f"{len(launches)} launches of Forms, {len(self.trace['launches'])} of all kernels")
            return
        launch, = launches
        marks, ranges = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        for mark in launch["markers"]:
            name = names[mark["markerNameIdx"]]
            form, number = self.payload(mark)
            marks[self.warp(mark["locIdx"])][name, form, ANY if name == "pointer" else number] += 1
        for row in launch["ranges"]:
            name = names[row["rangeNameIdx"]]
            begin, end = row["internalEvents"]
            form, number = self.payload(begin)
            last = self.payload(end)[1]
            ranges[self.warp(row["warpLocIdxs"][0])][name, row["rangeType"], form, number, last] += 1
            if not begin["timestamp"] == row["startTs"] <= row["endTs"] == end["timestamp"]:
                self.differences.append(f"{name}: its times are not those of its events")
        more = [(f"more {i:02}", 5, i) for i in range(1, 21)] if extended else []
        for warp in WARPS:
            expected = collections.Counter((name, form, value(form, number)) for name, form, number in
                                           [*MARKS, *lanes(warp[1]), *more])
            self.compare("mark", warp, expected, marks.pop(warp, collections.Counter()))
            expected = collections.Counter((name, kind, form, value(form, begin), value(form, end))
                                           for name, kind, form, begin, end in RANGES)
            self.compare("range", warp, expected, ranges.pop(warp, collections.Counter()))
        for warp in {*marks, *ranges}:
            self.differences.append(f"CTA {warp[0]}, warp {warp[1]} is not of the launch")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    collected.add_arguments(parser)
    parser.add_argument("--extended", action="store_true")
    options = parser.parse_args()
    trace, path = collected.trace_of(options, parser)
    check = Check(trace)
    check.run(options.extended)
    for line in check.differences:
        print(f"official_check: {line}")
    if not check.differences:
        print(f"official_check: {path}: as marked")
    return 1 if check.differences else 0


if __name__ == "__main__":
    sys.exit(main())
