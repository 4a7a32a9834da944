#!/usr/bin/env python3
"""How far from the truth the events of long-lived warps are placed, with pairs of clocks on the way and without.

    clock_pairs.py [--program PROGRAM] [--iket IKET] [--out OUT.md]

The program's marks carry %globaltimer, read just before: what their time on the timeline differs from it by is the
error, and the instructions in between. Needs a GPU.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def errors_of(trace):
    """By kernel, for each mark, ns from its payload to its time."""
    errors = {}
    for launch in trace["launches"]:
        name = re.search(r"With(out)?Pairs", launch["kernelName"])[0]
        for mark in launch["markers"]:
            if trace["stringTable"][mark["markerNameIdx"]] == "now":
                errors.setdefault(name, []).append(mark["timestamp"] - mark["payloadVal"])
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=os.path.join(HERE, "clock_pairs"))
    parser.add_argument("--iket", default=os.path.join(HERE, "..", "iket"))
    parser.add_argument("--out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "out")
        subprocess.run([options.iket, "profile", "--export", "trace.json", "-o", output, "--", options.program],
                       check=True, timeout=240, stdout=subprocess.DEVNULL)
        path, = (name for name in os.listdir(output) if name.endswith(".trace.json"))
        with open(os.path.join(output, path), encoding="utf-8") as file:
            errors = errors_of(json.load(file))
    lines = ["| | marks | median, ns | rms around it | farthest |", "|---|---|---|---|---|"]
    for name, found in sorted(errors.items(), reverse=True):
        middle = sorted(found)[len(found) // 2]
        rms = math.sqrt(sum((error - middle) ** 2 for error in found) / len(found))
        farthest = max(abs(error - middle) for error in found)
        lines.append(f"| {'a pair each millisecond' if name == 'WithPairs' else 'none on the way'} | {len(found):,} | "
                     f"{middle:+,} | {rms:,.0f} | {farthest:,} |")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main())
