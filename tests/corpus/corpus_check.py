#!/usr/bin/env python3
"""Runs the corpus and compares what it computes with what an H200 computed.

    corpus_check.py --runner PROGRAM --cubins PATTERN --expected FILE [--iket IKET --out FOLDER] [KERNEL...]
    corpus_check.py ... --record            writes FILE instead of comparing

With --unsupported each kernel runs in a process of its own, and those that the file names must be refused as
unsupported by the device: neither computed, and so to be taken off the list, nor computed wrongly.

With --iket the runner is profiled, and the capture must hold exactly one mark a warp, with the number of
the warp's first thread. Prints a line for each difference; exit code 1 if there was one. The device is
whatever libcuda.so.1 finds: LD_LIBRARY_PATH says which.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, os.pardir, folder) for folder in ("", "gpu", "python")]
sys.dont_write_bytecode = True
import oracle_check  # noqa: E402

# In the source tree beside this file, in a packed one in the folder of the cubins.
MANIFEST = next(filter(os.path.exists, (os.path.join(HERE, "corpus.txt"),
                                        os.path.join(HERE, "corpus", "corpus.txt"))))
THREADS = 256


def words_of(row):
    text = row["words"]
    return [int(text[i:i + 8], 16) for i in range(0, len(text), 8)]


def singles(words):
    return [struct.unpack("<f", struct.pack("<I", word))[0] for word in words]


def halves(words):
    return [struct.unpack("<e", struct.pack("<H", word >> shift & 0xffff))[0]
            for word in words for shift in (0, 16)]


def difference(got, want):
    """Why two results of a kernel are not the same, or an empty text."""
    kind = want["compare"]
    if got["hash"] == want["hash"]:
        return ""
    if kind == "exact":
        return f"words {got['words']}..., expected {want['words']}..."
    a, b = words_of(got), words_of(want)
    if len(a) != len(b):
        return f"{len(a)} words, expected {len(b)}"
    decode = halves if kind == "mmahalf" else singles
    for i, (x, y) in enumerate(zip(decode(a), decode(b))):
        # The products of a matrix kernel add up to 64 at most.
        if not abs(x - y) <= 64 * 2.0 ** -10:
            return f"value {i} is {x!r}, expected {y!r}"
    return ""


def run(options):
    command = [options.runner, MANIFEST, options.cubins, *options.kernels]
    if options.iket:
        command = [options.iket, "profile", "--clobber", "-o", options.out, "--export", "none", "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
    rows = {row["kernel"]: row for row in map(json.loads, filter(lambda line: line.startswith("{"),
                                                                 done.stdout.splitlines()))}
    return rows, done


def check_each(options, expected):
    """The software device: every kernel equal, or refused if the list says so."""
    with open(options.unsupported, encoding="utf-8") as file:
        refused = {line.split()[0] for line in file if line.strip() and not line.startswith("#")}
    faults = [f"{kernel}: is on the list of what is not supported, but no kernel"
              for kernel in refused - set(expected)]

    def one(kernel):
        command = [options.runner, MANIFEST, options.cubins, kernel]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return f"{kernel}: does not end"
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        text = difference(json.loads(lines[0]), expected[kernel]) if lines else "no result"
        if kernel not in refused:
            return text and f"{kernel}: {text} {done.stderr.splitlines()[:1]}"
        if lines:
            return f"{kernel}: computed, though on the list of what is not supported ({text or 'equal'})"
        return "" if "unsupported" in done.stderr else f"{kernel}: {done.stderr.splitlines()[:1]}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults += filter(None, pool.map(one, options.kernels or expected))
    return faults, len(refused)


def check_marks(options, kernels):
    """Lines about marks that the capture lacks, has too many of, or with another payload."""
    captures = glob.glob(os.path.join(options.out, "*.iketcap"))
    if len(captures) != 1:
        return [f"{len(captures)} captures of one process"]
    with open(captures[0], "rb") as file:
        rings = oracle_check.Rings(oracle_check.iketcap.read(file.read()))
    marks = collections.defaultdict(list)
    for warp in rings.warps:
        for event in warp.events:
            marks[event.label[0]].append(event.label[3])
    warps = list(range(0, THREADS, 32))
    return [f"{kernel}: marks with {sorted(marks[kernel])}, expected {warps}"
            for kernel in kernels if sorted(marks[kernel]) != warps]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runner", required=True)
    parser.add_argument("--cubins", required=True, help="pattern with {} for the source")
    parser.add_argument("--expected", required=True)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--unsupported", metavar="FILE")
    parser.add_argument("--iket")
    parser.add_argument("--out")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("kernels", nargs="*")
    options = parser.parse_args()
    if options.unsupported:
        with open(options.expected, encoding="utf-8") as file:
            expected = {row["kernel"]: row for row in map(json.loads, file)}
        faults, refused = check_each(options, expected)
        print("\n".join([*faults, f"{len(expected) - refused - len(faults)} of {len(expected)} kernels equal, "
                                   f"{refused} not supported"]))
        return 1 if faults else 0
    rows, done = run(options)
    sys.stderr.write(done.stderr)
    if options.record:
        with open(options.expected, "w", encoding="utf-8") as file:
            for row in rows.values():
                file.write(json.dumps(row, separators=(",", ":")) + "\n")
        return done.returncode
    with open(options.expected, encoding="utf-8") as file:
        expected = {row["kernel"]: row for row in map(json.loads, file)}
    wanted = options.kernels or list(expected)
    faults = []
    for kernel in wanted:
        if kernel not in rows:
            faults.append(f"{kernel}: no result")
        elif text := difference(rows[kernel], expected[kernel]):
            faults.append(f"{kernel}: {text}")
    if options.iket:
        faults += check_marks(options, wanted)
    for fault in faults:
        print(fault)
    print(f"{len(wanted) - len(faults)} of {len(wanted)} kernels equal")
    return 1 if faults or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
