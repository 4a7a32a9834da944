#!/usr/bin/env python3
"""From a capture to its exports: events a second, bytes and resident memory, by the length of the capture.

    postprocess.py [--events 1e5,1e6,...] [--formats pftrace,...] [--memory BYTES] [--rounds N] [--folder DIR]

Runs on one core (taskset), three rounds of everything in turns; a figure is the median of the rounds. Captures are of
stream_capture. Exports go to /dev/null. `read` is a checksum and unpacking, `decode` pairing too; both are within
the whole time of each format, and "x decode" says how often as long as these two it takes. With --memory columns
lie in files (IKET_DECODE_BYTES) where the decoded capture is larger. Prints a table of Markdown.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time


def find_program(name):
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (os.environ.get("IKET_BIN", ""), here, os.path.join(here, ".."), os.path.join(here, "../../build/release/bin")):
        path = os.path.join(folder, name)
        if folder and os.access(path, os.X_OK):
            return path
    sys.exit(f"postprocess.py: no {name}: build it, or say in IKET_BIN where it is")


def run(command, variables):
    """Output, seconds and the most that was resident, in bytes."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **variables})
    output = process.stdout.read()
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"postprocess.py: {' '.join(command)}: {said}")
    return output, seconds, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", default="1e5,1e6,1e7")
    parser.add_argument("--formats", default="pftrace,pftrace.gz,trace.json,chrome.json,csv,html")
    parser.add_argument("--memory", type=float)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", default="0", help="for taskset; 0,1 for two")
    parser.add_argument("--folder", help="for the captures, by default one of its own")
    arguments = parser.parse_args()
    iket, maker = find_program("iket"), find_program("stream_capture")
    variables = {"IKET_DECODE_BYTES": str(int(arguments.memory))} if arguments.memory else {}
    bound = ["taskset", "-c", arguments.cores]

    print("| events | what | M events/s | x decode | bytes an event | resident, MB |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for events in (int(float(text)) for text in arguments.events.split(",")):
            capture = os.path.join(folder, "stream.iketcap")
            made, _, _ = run([maker, "make", str(events), capture], {})
            count = int(re.match(r"(\d+) events", made).group(1))
            times, resident, sizes = {}, {}, {}

            def note(name, seconds, most):
                times.setdefault(name, []).append(seconds)
                resident[name] = max(resident.get(name, 0), most)

            for _ in range(arguments.rounds):
                if not arguments.memory:  # it has no columns in files
                    said, _, most = run([*bound, maker, "decode", capture], variables)
                    read, decoded = map(float, re.search(r"read ([\d.]+) s, .* paired ([\d.]+) s", said).groups())
                    note("read", read, most)
                    note("decode and pair", decoded, most)
                for name in filter(None, arguments.formats.split(",")):
                    command = [*bound, iket, "export", capture, "--format", name, "--json", "-o", "/dev/null"]
                    said, seconds, most = run(command, variables)
                    sizes[name] = int(re.search(r'"bytes": ?(\d+)', said).group(1)) / count
                    note(name, seconds, most)
            whole = sum(statistics.median(times.get(name, [0])) for name in ("read", "decode and pair"))
            for name, seconds in times.items():
                median = statistics.median(seconds)
                share = f"{median / whole:.1f}" if whole and name in sizes else ""
                size = f"{sizes[name]:.2f}" if name in sizes else ""
                if name == "read":
                    size = f"{os.path.getsize(capture) / count:.2f}"
                print(f"| {count:,} | {name} | {count / median / 1e6:.1f} | {share} | {size} | "
                      f"{resident[name] / 1e6:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
