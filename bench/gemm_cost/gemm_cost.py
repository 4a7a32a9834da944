#!/usr/bin/env python3
"""What tracing costs the WGMMA example, four ranges a k-step: docs/benchmarks/gemm_cost.md.

    gemm_cost.py [--tree FOLDER] [--rounds N] [--size N] [--out OUT]

Clean, marked and collected runs take turns, so that a GPU that warms up is no result.
"""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir)]
import gpu_table  # noqa: E402


def microseconds(command):
    output = gpu_table.run(command)
    found = re.search(r": ([0-9.]+) us,.* ok$", output, re.MULTILINE)
    if not found:
        raise gpu_table.Failed(f"{' '.join(command)}: no time, or a wrong result: {output[-300:]}")
    return float(found.group(1))


def one_launch(iket, program, size, folder):
    """What is kept and lost of exactly one launch, by `iket report`."""
    out = os.path.join(folder, "one")
    gpu_table.run([iket, "profile", "-o", out, "--export", "none", "--", program, "--size", size,
                   "--iterations", "1", "--warmup", "0"])
    captures = glob.glob(os.path.join(out, "*.iketcap"))
    if len(captures) != 1:
        raise gpu_table.Failed(f"{len(captures)} captures of one process")
    trust = json.loads(gpu_table.run([iket, "report", "--json", captures[0]]))["trust"]
    return {"launches": trust["launches"], "warps": trust["warps"], "events": trust["events"],
            "lost": trust["counters"]["records_lost"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", default=os.path.join(HERE, "..", ".."), help="folder that has bin")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", default="4096")
    parser.add_argument("--out", help="writes OUT.md and OUT.json", metavar="OUT")
    options = parser.parse_args()
    programs = os.path.join(options.tree, "bin")
    iket = os.path.join(programs, "iket")
    clean = os.path.join(programs, "examples", "gemm_wgmma")
    marked = clean + "_marked"
    size = ["--size", options.size]
    times = {"clean": [], "marked, not collected": [], "marked, collected": []}
    try:
        device = gpu_table.lines_of(gpu_table.run([os.path.join(programs, "bench", "device")]))[0]
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(options.rounds):
                times["clean"].append(microseconds([clean, *size]))
                times["marked, not collected"].append(microseconds([marked, *size]))
                times["marked, collected"].append(microseconds(
                    [iket, "profile", "-o", os.path.join(folder, str(turn)), "--export", "none",
                     "--", marked, *size]))
            one = one_launch(iket, marked, options.size, folder)
    except (gpu_table.Failed, OSError, ValueError, KeyError,
            subprocess.TimeoutExpired) as problem:
        print(f"gemm_cost: {type(problem).__name__}: {problem}", file=sys.stderr)
        return 1
    base = statistics.median(times["clean"])
    rows = [[name, f"{statistics.median(values):.2f}",
             f"{100 * (statistics.median(values) / base - 1):+.2f} %",
             f"{min(values):.2f} to {max(values):.2f}"] for name, values in times.items()]
    text = (f"fp16 GEMM {options.size}^3 by TMA and WGMMA, microseconds a launch: median of "
            f"{options.rounds} runs of 20 launches each, taken in turns.\n\n"
            + gpu_table.table(["gemm_wgmma", "us", "over clean", "least to most"], rows)
            + f"\nOf one launch, collected: {one['events']} events of {one['warps']} warps kept, "
              f"{one['lost']} records lost, {one['launches']['complete']} of "
              f"{one['launches']['all']} launches complete.\n")
    gpu_table.write(options, "Cost of tracing a GEMM", device, text, {"us": times, "one_launch": one})
    return 0


if __name__ == "__main__":
    sys.exit(main())
