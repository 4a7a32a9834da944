#!/usr/bin/env python3
"""Does a trace have what CUB's annotations and cub.cu mark?

    cub_check.py TRACE
    cub_check.py --iket IKET --program cub --out FOLDER

TRACE is a .trace.json, of `cub` or of `cub_official`, on a GPU before sm_100 (where CUB scans in another way), run-iket's
or ours. Ends with 1 and a line for each difference.
"""
import argparse
import collections
import sys

import collected

WARPS = 4  # of the kernel Macros, whose counts are known
STEPS = 3
MACROS = {"range": {"Life": WARPS, "Wait": WARPS * STEPS, "Step": WARPS * STEPS, "Work": WARPS * STEPS},
          "mark": {"Ready": WARPS, "Cycle": WARPS * STEPS}}
# What CUB marks: in each warp of a tile, and where a tile waits for those before it.
TILES = ("Load", "Scan", "Store")
LOOKBACK = {"DeviceScanKernel": ("Lookback", "ProcessWindow", "WaitForValid", "LoadTileStates", "Reduce", "SetPartial", "SetInclusive"),
            "DeviceReduceByKeyKernel": ("Lookback", "ProcessWindow", "WaitForValid", "Reduce", "SetPartial", "SetInclusive")}


def differences(trace):
    names = trace["stringTable"]
    counts = collections.defaultdict(lambda: {"range": collections.Counter(), "mark": collections.Counter()})
    waits = []
    for launch in trace["launches"]:
        kernel = next((name for name in (*LOOKBACK, "Macros") if name in launch["kernelName"]), launch["kernelName"])
        for row in launch["ranges"]:
            name = names[row["rangeNameIdx"]]
            counts[kernel]["range"][name] += 1
            if kernel == "Macros" and name == "Wait":
                waits.append(tuple(event.get("payloadVal") for event in row["internalEvents"]))
        for row in launch["markers"]:
            counts[kernel]["mark"][names[row["markerNameIdx"]]] += 1
    for kernel, expected in LOOKBACK.items():
        ranges = counts[kernel]["range"]
        for name in expected:
            if not ranges[name]:
                yield f"{kernel}: no range {name}"
        if ranges["Lookback"] != ranges["SetInclusive"]:
            yield f"{kernel}: {ranges['Lookback']} ranges Lookback, {ranges['SetInclusive']} SetInclusive"
    ranges = counts["DeviceScanKernel"]["range"]
    if len({ranges[name] for name in TILES}) != 1 or not ranges["Load"]:
        yield "DeviceScanKernel: " + ", ".join(f"{ranges[name]} ranges {name}" for name in TILES) + "; each warp has one of each"
    for what, expected in MACROS.items():
        if dict(counts["Macros"][what]) != expected:
            yield f"Macros: {what}s {dict(counts['Macros'][what])} and not {expected}"
    expected = [(10 * k, k + 1) for k in range(STEPS) for _ in range(WARPS)]
    if sorted(waits) != sorted(expected):
        yield f"Macros: Wait begins and ends with {sorted(waits)} and not {sorted(expected)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    collected.add_arguments(parser)
    trace, path = collected.trace_of(parser.parse_args(), parser)
    found = list(differences(trace))
    for line in found:
        print(f"cub_check: {line}")
    if not found:
        print(f"cub_check: {path}: as marked")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
