#!/usr/bin/env python3
"""Finds the tables of the special function unit in what record.py recorded.

    solve.py RECORDED.npz --header src/sim/mufu_tables.h --hashes tests/data/sim/mufu.txt

The unit (src/sim/mufu.h) computes c0 + c1 * x + c2 * square(x) in integers and cuts the result off to 24 bits, so
each recorded result is an interval for that sum. Least squares give c1 and c2 to less than a half; c0 is then
bounded by all intervals of its row together. c0 has 26 bits and a bias that is the same in all rows of a
function: without it the rows alone leave c0 open by a few units, and one argument in 100,000 wrong.
Whether the whole is right is for mufu_test.cpp to say, which computes every recorded argument.
"""
import argparse

import numpy as np

LOW = 17
BIAS = {"sin": 0, "ex2": 2018 * 4, "lg2": 837 * 4, "rcp": 2023 * 2, "rsq": -1, "sqrt": -1, "tanh": 0}
UNIT = 40  # bits behind the point


def square(x, cut=19):
    """Without the partial products below 2^19, in units of those (mufu.cpp)."""
    bits = [(x >> i) & 1 for i in range(LOW)]
    total = np.zeros_like(x)
    for i in range(LOW):
        if 2 * i >= cut:
            total += bits[i] << (2 * i)
        for j in range(max(i + 1, cut - 1 - i), LOW):
            total += (bits[i] & bits[j]) << (i + j + 1)
    return total >> cut


def solve(low, results, bias):
    """(c0, c1, c2) of one row: `results` of the arguments `low`, positive and normal."""
    low, value = low.astype(np.int64), results.astype(np.float64) * 2.0 ** UNIT
    unit = 2.0 ** (np.floor(np.log2(value)) - 23)
    columns = np.stack([np.ones(len(low)), low, square(low)], 1)
    guess = np.linalg.lstsq(columns / unit[:, None], (value + unit / 2) / unit, rcond=None)[0]
    # c1 and c2 are whole numbers of coarser units than 2^-40, which differ between functions.
    for step in (8, 4, 2, 1):
        for c2 in step * (round(guess[2] / step) + np.array([0, 1, -1])):
            rest = (value + unit / 2 - c2 * columns[:, 2]) / unit
            slope = np.linalg.lstsq(columns[:, :2] / unit[:, None], rest, rcond=None)[0][1]
            for c1 in step * (round(slope / step) + np.array([0, 1, -1])):
                base = c1 * low.astype(np.float64) + c2 * columns[:, 2]
                least, most = np.max(value - base), np.min(value + unit - base)
                c0 = round((least - bias) / 2 ** (UNIT - 26)) * 2 ** (UNIT - 26) + bias
                if least - 512 <= c0 < most + 512 and least < most:
                    return int(c0), int(c1), int(c2)
    raise SystemExit("solve: no coefficients fit: is the argument cut to other bits?")


def rows(argument, result, count, bias):
    """A table of `count` rows for 23 bits of argument."""
    rest = 23 - (count.bit_length() - 1)
    table = []
    for row in range(count):
        here = (argument >> rest == row) & (argument & ((1 << 23) - 1) != 0)
        low = (argument[here] & ((1 << rest) - 1))
        low = low << (LOW - rest) if rest <= LOW else low >> (rest - LOW)
        table.append(solve(low, result[here], bias))
    return table


def tables(recorded):
    """By name of the header's arrays."""
    def floats(name, kind, first, stride, count):
        key = f"{name} {kind} {first} {stride} {count}"
        return recorded[key].view(np.float32).astype(np.float64)

    one, dense = 0x3f800000, np.arange(1 << 21, dtype=np.int64) * 4
    found = {
        "Sine": rows(dense, floats("sin", "fraction", 0, 23, 1 << 21), 64, BIAS["sin"]),
        "Exponential": rows(dense, floats("ex2", "fraction", 0, 21, 1 << 21), 64, BIAS["ex2"]),
        "Logarithm": rows(dense, floats("lg2", "bits", one, 4, 1 << 21), 64, BIAS["lg2"]),
        "Reciprocal": rows(dense, floats("rcp", "bits", one, 4, 1 << 21), 128, BIAS["rcp"]),
    }
    coarse = np.arange(1 << 19, dtype=np.int64) * 16
    for name, array in (("rsq", "ReciprocalRoot"), ("sqrt", "Root")):
        both = floats(name, "bits", one, 16, 1 << 20)
        found[array + "Even"] = rows(coarse, both[:1 << 19], 64, BIAS[name])
        found[array + "Odd"] = rows(coarse, both[1 << 19:], 64, BIAS[name])
    octaves, tangent, mantissas = [], [], np.arange(1 << 16, dtype=np.int64) * 128
    for exponent, log2_rows in zip(range(119, 130), (0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3)):
        octaves.append((len(tangent), log2_rows))
        tangent += rows(mantissas, floats("tanh", "bits", exponent << 23, 128, 1 << 16),
                        1 << log2_rows, BIAS["tanh"])
    found["Tangent"] = tangent
    return found, octaves


HEAD = """// mufu_tables.h: the coefficients of the special function unit of sm_90 (mufu.h). Not edited by
// hand: tools/mufu/solve.py finds them in what an H200 computed.
#pragma once

#include <cstdint>

namespace iket::sim {

// One row of a table: c0 + c1 * x + c2 * square(x), in units of 2^-40.
struct MufuRow {
  int64_t c0;
  int32_t c1;
  int32_t c2;
};

// clang-format off
"""
TAIL = """// clang-format on

}  // namespace iket::sim
"""
COMMENTS = {"Sine": "The first quarter of a turn.", "Exponential": "2^x of a fraction.",
            "Logarithm": "The binary logarithm of a mantissa.", "Reciprocal": "Of a mantissa.",
            "Tangent": "The hyperbolic tangent, octave after octave from 2^-8 on."}


def header(found, octaves):
    text = HEAD
    for name, table in found.items():
        comment = COMMENTS.get(name, "Of a mantissa." if name.endswith("Even") else "Of twice a mantissa.")
        text += f"// {comment}\ninline constexpr MufuRow k{name}[] = {{\n"
        line = "   "
        for row in table:
            cell = " {%d, %d, %d}," % row
            if len(line + cell) > 100:
                text, line = text + line + "\n", "   "
            line += cell
        text += line + "\n};\n\n"
    text += ("// For each octave of those: its first row, and the logarithm of how many it has.\n"
             "struct MufuOctave {\n  uint8_t first;\n  uint8_t log2_rows;\n};\n"
             "inline constexpr MufuOctave kTangentOctaves[] = {\n    "
             + " ".join("{%d, %d}," % octave for octave in octaves) + "\n};\n\n")
    return text + TAIL


def hashes(recorded):
    lines = ["# What the special function unit of an H200 (driver 580.159) computed, by tools/mufu/record.py: FNV-1a",
             "# (32 bits, a word at a time) over the results of `count` arguments. bits: argument i is first +",
             "# i * stride. fraction: it is the float i / 2^stride. half: both are halves.",
             "# function kind first stride count hash"]
    for key, result in recorded.items():
        name, kind, first, stride, count = key.split()
        value = 0x811c9dc5
        for word in result.tolist():
            value = (value ^ word) * 0x01000193 & 0xffffffff
        lines.append(f"{name} {kind} {int(first):#x} {int(stride):#x} {count} {value:08x}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recorded")
    parser.add_argument("--header", required=True)
    parser.add_argument("--hashes", required=True)
    options = parser.parse_args()
    recorded = dict(np.load(options.recorded))
    with open(options.header, "w", encoding="utf-8") as file:
        file.write(header(*tables(recorded)))
    with open(options.hashes, "w", encoding="utf-8") as file:
        file.write(hashes(recorded))


if __name__ == "__main__":
    main()
