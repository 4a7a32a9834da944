"""The trace that a check looks at: a file, or what `iket profile` collects of a program now."""
import glob
import json
import os
import subprocess
import sys


def add_arguments(parser):
    parser.add_argument("trace", nargs="?", metavar="TRACE", help="a .trace.json, of run-iket or of iket")
    parser.add_argument("--program", nargs="+", help="run this under `iket profile` instead")
    parser.add_argument("--iket", default="iket", help="the program of that name")
    parser.add_argument("--out", default="iket_output", help="where it writes")


def trace_of(options, parser):
    """The trace as an object, and where it was read."""
    if (options.trace is None) == (options.program is None):
        parser.error("give a TRACE, or --program PROGRAM")
    path = options.trace
    if path is None:
        done = subprocess.run([options.iket, "profile", "--export", "trace.json", "-o", options.out, "--",
                               *options.program], check=False)
        if done.returncode:
            sys.exit(f"iket profile ended with {done.returncode}")
        found = glob.glob(os.path.join(glob.escape(options.out), "*.trace.json"))
        if len(found) != 1:
            sys.exit(f"{options.out}: {len(found)} traces and not one")
        path = found[0]
    with open(path, encoding="utf-8") as file:
        return json.load(file), path
