"""Runs a GPU benchmark as it is and under `iket profile`, and writes what came out as a table.

Shared by event_cost.py, many_ctas.py and launch_cost.py; Python's own library alone.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments(about, program):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--program", default=os.path.join(HERE, program))
    parser.add_argument("--iket", help="the program iket; without it nothing is collected",
                        default=next((path for path in [os.path.join(HERE, "..", "iket")]
                                      if os.path.exists(path)), None))
    parser.add_argument("--with", dest="options", action="append", default=[], metavar="OPTION",
                        help="an option for iket profile, such as --with=--flight")
    parser.add_argument("--out", help="writes OUT.md and OUT.json", metavar="OUT")
    parser.add_argument("--merge", nargs=2, metavar=("PLAIN", "COLLECTED"),
                        help="makes the table of outputs that were recorded before")
    return parser.parse_args()


class Failed(Exception):
    pass


def run(command):
    done = subprocess.run(command, check=False, timeout=240, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}: "
                     f"{done.stderr.decode('utf-8', 'replace')[-500:]}")
    return done.stdout.decode()


def lines_of(text):
    """The JSON objects among the lines of an output; other lines belong to somebody else."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def measure(options):
    """The lines of a plain run and of a collected one (None without iket)."""
    if options.merge:
        texts = []
        for path in options.merge:
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        return lines_of(texts[0]), lines_of(texts[1])
    plain = lines_of(run([options.program]))
    if not options.iket:
        return plain, None
    with tempfile.TemporaryDirectory() as folder:
        collected = lines_of(run([options.iket, "profile", "-o", os.path.join(folder, "out"),
                                  "--export", "none", *options.options, "--", options.program]))
    return plain, collected


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def percent(value, base):
    return f"{100 * (value / base - 1):+.1f} %"


def write(options, title, device, text, data):
    where = f"{device['device']}, {device['multiprocessors']} SMs, CUDA driver " + re.sub(
        r"^(\d+)0(\d)0$", r"\1.\2", str(device["cuda_driver"]))
    text = f"# {title}\n\n{where}.\n\n{text}"
    print(text)
    if options.out:
        with open(options.out + ".md", "w", encoding="utf-8") as file:
            file.write(text)
        with open(options.out + ".json", "w", encoding="utf-8") as file:
            json.dump({"title": title, "device": device, **data}, file, indent=1)
            file.write("\n")


def main(about, program, make):
    options = arguments(about, program)
    try:
        plain, collected = measure(options)
        make(options, plain, collected)
    except (Failed, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as problem:
        print(f"{program}: {type(problem).__name__}: {problem}", file=sys.stderr)
        return 1
    return 0
