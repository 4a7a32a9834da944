#!/usr/bin/env python3
"""Makes the Markdown tables of docs/benchmarks/compat.md of what the programs beside this one printed.

    tables.py cost --marked FILE --theirs FILE --ours FILE
    tables.py gemm --marked FILE... --theirs FILE... --ours FILE...
    tables.py json --theirs FILE --ours FILE

marked: marks compiled in, nobody collects. run-iket runs a program twice: what was printed last counts. Ends with 1 where a
file does not have what is looked for.
"""
import argparse
import statistics
import sys

SIDES = ("marked", "theirs", "ours")


class MissingError(Exception):
    """A file does not say what it should."""


def lines_of(path, word):
    """The words of the lines that begin with this one."""
    with open(path, encoding="utf-8", errors="replace") as file:
        found = [line.split()[1:] for line in file if line.split()[:1] == [word]]
    if not found:
        raise MissingError(f"{path} has no line '{word} ...'")
    return found


def cost(files):
    """Cycles that an event adds to the iteration of the same program that has none."""
    cycles = {}
    for side, (path,) in files.items():
        for kind, warps, value in lines_of(path, "event"):
            cycles[side, kind, int(warps)] = float(value)
    counts = sorted({warps for _, _, warps in cycles})
    print("| event, warps a SM | iteration without, cycles | compiled in, not collected | run-iket | iket |")
    print("|---|---|---|---|---|")
    for kind, words in (("mark", "one mark"), ("payload", "mark, 32 bits of payload"), ("range", "push and pop")):
        for warps in counts:
            try:
                clean = {side: cycles[side, "clean", warps] for side in SIDES}
                added = [cycles[side, kind, warps] - clean[side] for side in SIDES]
            except KeyError as error:
                raise MissingError(f"not measured: {error}") from error
            print(f"| {words}, {warps} | {clean['marked']:.1f} | " + " | ".join(f"{value:+.1f}" for value in added) + " |")


def gemm(files):
    """Microseconds of a launch: of each process the median of its batches, and the median of the processes."""
    times = {}
    for side, paths in files.items():
        for kernel in ("clean", "marked"):
            found = []
            for path in paths:
                rows = [words for words in lines_of(path, "gemm") if words[0] == kernel]
                if not rows:
                    raise MissingError(f"{path} has no line 'gemm {kernel} ...'")
                found.append([float(word) for word in rows[-1][1:4]])
            times[side, kernel] = found

    def median(side, kernel):
        return statistics.median(row[0] for row in times[side, kernel])

    base = median("marked", "clean")
    print("| GEMM, µs a launch | clean, same process | marked | to clean, same process | to clean, nobody collects | "
          "least to most |")
    print("|---|---|---|---|---|---|")
    for side, words in zip(SIDES, ("marks compiled in, not collected", "run-iket", "iket")):
        clean, marked = median(side, "clean"), median(side, "marked")
        rows = times[side, "marked"]
        print(f"| {words} | {clean:.2f} | {marked:.2f} | {100 * (marked / clean - 1):+.2f} % "
              f"| {100 * (marked / base - 1):+.2f} % | {min(row[1] for row in rows):.2f} to {max(row[2] for row in rows):.2f} |")


def last(path, word):
    return float(lines_of(path, word)[-1][0])


def json(files):
    """Seconds until the JSON is there, and its size."""
    (theirs,), (ours,) = files["theirs"], files["ours"]
    seconds, size = last(ours, "seconds"), last(ours, "bytes")
    print("| JSON of 24 launches, 28.5 M events | seconds | size |")
    print("|---|---|---|")
    try:
        stopped = last(theirs, "stopped")
    except MissingError:
        other = last(theirs, "seconds")
        print(f"| run-iket postprocess --format json | {other:.1f} | {last(theirs, 'bytes') / 1e9:.2f} GB |")
        print(f"| iket export --format trace.json | {seconds:.1f}, **{other / seconds:.0f} times faster** | {size / 1e9:.2f} GB |")
        return
    print(f"| run-iket postprocess --format json | not done after {stopped:.0f} | |")
    print(f"| iket export --format trace.json | {seconds:.1f}, **more than {stopped / seconds:.0f} times faster** "
          f"| {size / 1e9:.2f} GB |")


TABLES = {"cost": cost, "gemm": gemm, "json": json}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    for side in SIDES:
        parser.add_argument(f"--{side}", nargs="+", default=[])
    options = parser.parse_args(arguments)
    files = {side: getattr(options, side) for side in SIDES}
    wanted = SIDES[1:] if options.table == "json" else SIDES
    for side in wanted:
        if not files[side] or (options.table != "gemm" and len(files[side]) != 1):
            parser.error(f"{options.table} wants --{side} FILE")
    try:
        TABLES[options.table](files)
    except (MissingError, OSError, ValueError, IndexError) as error:
        print(f"tables: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
