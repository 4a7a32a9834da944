"""Runs the guests of programs.txt without and with `iket profile` and says where the two differ.

    guest_matrix.py --tree TREE --out OUT [--device sim] [--jobs N] [NAME...]

TREE has bin/iket and bin/tests/guest. A guest passes if standard output and exit code are the same both
times, and the events are those that its row says. OUT gets summary.txt, and for each guest what both runs
said. The exit code is 1 if a guest does not pass, 2 if the call is wrong.
"""

import argparse
import concurrent.futures
import dataclasses
import glob
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time

LIMIT_SECONDS = 60
NOTHING_RECORDED = 4  # exit code of `iket profile`
TOO_LONG = -1000
CANNOT_RUN = 77  # exit code of a guest that lacks something, and says what


@dataclasses.dataclass
class Guest:
    name: str
    variables: dict
    command: list
    expected: str
    needs: list

    def events(self):
        """The exact number of events, or None where the row does not say one."""
        number = self.expected.split(",")[0]
        return int(number) if number.isdigit() else None

    def refusal(self):
        return self.said("refused: ")

    def exit_code(self):
        return int(self.said("exit ") or 0)

    def said(self, what):
        """What stands behind a word in the third column, up to the next comma."""
        _, _, text = self.expected.partition(what)
        return text.split(",")[0]


@dataclasses.dataclass
class Run:
    code: int
    output: bytes
    errors: str


def read_rows(path, folder):
    guests = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.split("|")]
            if len(fields) != 4:
                sys.exit(f"{path}:{number}: {len(fields)} fields, not 4")
            name, command, expected, needs = fields
            words = [word.replace("{}", folder) for word in command.split()]
            variables = {}
            while "=" in words[0]:
                variable, _, value = words.pop(0).partition("=")
                variables[variable] = value
            if words[0] != "python3":
                words[0] = os.path.join(folder, words[0])
            guests.append(Guest(name, variables, words, expected, needs.split()))
    return guests


def execute(command, folder, name, environment, limit=LIMIT_SECONDS):
    """Runs in a folder of its own, until all have gone that hold its output: a supervisor may die before
    its program. What lasts too long is killed with all its children."""
    os.makedirs(folder, exist_ok=True)
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        output, errors = process.communicate(timeout=limit)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        code = TOO_LONG
    for end, said in (("out", output), ("err", errors)):
        with open(os.path.join(folder, f"{name}.{end}"), "wb") as file:
            file.write(said)
    # A shell's way to say a signal, which is also that of `iket profile`.
    return Run(128 - code if TOO_LONG < code < 0 else code, output,
               errors.decode(errors="replace"))


def summary_of(run):
    """The closing line of `iket profile --json`, or None."""
    for line in reversed(run.errors.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


class Matrix:
    def __init__(self, options):
        self.options = options
        self.tree = options.tree
        self.folder = os.path.join(self.tree, "bin/tests/guest")
        self.iket = os.path.join(self.tree, "bin/iket")
        self.profile = [self.iket, "profile", "--json", "--export", "none"]
        self.environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1",
                            "IKET_GUEST_INCLUDE": os.path.join(self.tree, "include")}
        self.bare = dict(self.environment)
        if options.device == "sim":
            self.profile += ["--device", "sim"]
            driver = os.path.join(self.tree, "lib/iket-sim")
            paths = [driver, os.environ.get("LD_LIBRARY_PATH", "")]
            self.bare["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
        self.modules = {}

    def missing(self, guest):
        """Why this guest cannot run here, or ''."""
        for need in guest.needs:
            if need == "gpu":
                if self.options.device == "sim":
                    return "needs a GPU"
            elif not self.has_module(need):
                return f"no Python module {need}"
        if guest.command[0] == "python3" and shutil.which("python3") is None:
            return "no python3"
        return ""

    def has_module(self, name):
        if name not in self.modules:
            found = subprocess.run(["python3", "-c", f"import {name}"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, check=False)
            self.modules[name] = found.returncode == 0
        return self.modules[name]

    def run(self, guest):
        """(what is wrong, line of the table), or (None, why it cannot run)."""
        where = os.path.join(self.options.out, guest.name)
        shutil.rmtree(where, ignore_errors=True)
        clean = execute(guest.command, where, "clean", {**self.bare, **guest.variables})
        if clean.code == CANNOT_RUN:
            return None, clean.output.decode(errors="replace").strip()
        captures = os.path.join(where, "iket")
        traced = execute(self.profile + ["-o", captures, "--"] + guest.command, where, "profiled",
                         {**self.environment, **guest.variables})
        summary = summary_of(traced)
        wrong = self.compare(guest, clean, traced, summary)
        kept = summary["events_kept"] if summary else 0
        for capture in glob.glob(os.path.join(captures, "*.iketcap")):
            if not wrong or os.path.getsize(capture) > (2 << 20):
                os.remove(capture)
        line = f"{guest.name:24} {clean.code:4} {traced.code:4} {kept:8}  {guest.expected}"
        return wrong, line

    def compare(self, guest, clean, traced, summary):
        wrong = []
        for run, name in ((clean, "without"), (traced, "with")):
            if run.code == TOO_LONG:
                wrong.append(f"{name} iket it did not end in {LIMIT_SECONDS} s")
        if clean.code != guest.exit_code():
            wrong.append(f"without iket it ends with {clean.code}: "
                         f"{(clean.output[-200:].decode(errors='replace') + clean.errors[-300:])!r}")
        if clean.output != traced.output:
            wrong.append(f"standard output differs: {clean.output[-200:]!r} without, "
                         f"{traced.output[-200:]!r} with")
        if guest.expected == "supervisor dies":
            return wrong + ([] if b"done" in traced.output else ["it did not end"])
        nothing = guest.expected == "none" or guest.events() == 0
        wanted = NOTHING_RECORDED if nothing and clean.code == 0 else clean.code
        if traced.code != wanted:
            wrong.append(f"exit code {traced.code}, not {wanted}")
        if guest.expected.startswith("any"):
            return wrong
        refused = summary["refused"] if summary else []
        kept = summary["events_kept"] if summary else 0
        if kept != (guest.events() or 0):
            wrong.append(f"{kept} events, not {guest.events() or 0}")
        if summary and summary["records_lost"]:
            wrong.append(f"{summary['records_lost']} records lost")
        if guest.refusal():
            if not any(guest.refusal() in one["reason"] for one in refused):
                wrong.append(f"no refusal says '{guest.refusal()}'")
        elif refused:
            wrong.append(f"refused: {refused[0]['kernel']}: {refused[0]['reason']}")
        return wrong

    def torch_start(self):
        """Seconds from start to end of `import torch` and a first kernel, without and with."""
        program = ["python3", os.path.join(self.folder, "torch_first.py")]
        where = os.path.join(self.options.out, "torch_start")
        seconds = {"without": [], "with": []}
        for attempt in range(3):
            for kind, command in (("without", program),
                                  ("with", self.profile + ["-o", os.path.join(where, "iket"), "--"]
                                   + program)):
                began = time.monotonic()
                execute(command, where, f"{kind}{attempt}", self.environment)
                seconds[kind].append(time.monotonic() - began)
        clean, traced = (statistics.median(seconds[kind]) for kind in ("without", "with"))
        return (f"import torch and a first kernel: {clean:.2f} s without, {traced:.2f} s with iket "
                f"profile ({traced - clean:+.2f} s; medians of 3, of the whole process)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", required=True, type=os.path.abspath)
    parser.add_argument("--out", required=True, type=os.path.abspath)
    parser.add_argument("--device", choices=["gpu", "sim"], default="gpu")
    parser.add_argument("--jobs", type=int, default=2, help="guests at a time")
    parser.add_argument("--rows", help="the table, if not the one of the tree")
    parser.add_argument("names", nargs="*", help="guests to run, all if none is named")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    matrix = Matrix(options)
    rows = options.rows or os.path.join(matrix.folder, "programs.txt")
    guests = read_rows(rows, matrix.folder)
    unknown = set(options.names) - {guest.name for guest in guests}
    if unknown:
        parser.error(f"no guest is called {', '.join(sorted(unknown))}")
    if options.names:
        guests = [guest for guest in guests if guest.name in options.names]

    lines = []

    def say(text):
        print(text, flush=True)
        lines.append(text)

    absent = {}
    runnable = []
    for guest in guests:
        why = matrix.missing(guest)
        if why:
            absent.setdefault(why, []).append(guest.name)
        else:
            runnable.append(guest)
    say(f"{'guest':24} {'code':>4} {'with':>4} {'events':>8}  expected")
    failed = []
    passed = 0
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for guest, (wrong, line) in zip(runnable, pool.map(matrix.run, runnable)):
            if wrong is None:
                absent.setdefault(line, []).append(guest.name)
                continue
            passed += not wrong
            say(line + ("  <-- FAILED" if wrong else ""))
            for reason in wrong:
                say(f"    {reason}")
            if wrong:
                failed.append(guest.name)
    if "torch_first" in [guest.name for guest in runnable]:
        say(matrix.torch_start())
    for why, names in absent.items():
        say(f"not run, {why}: {' '.join(names)}")
    say(f"{passed} of {passed + len(failed)} guests pass, in "
        f"{time.monotonic() - began:.0f} s")
    if failed:
        say(f"FAILED: {' '.join(failed)}")
    with open(os.path.join(options.out, "summary.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    # A run in which nothing ran shows nothing.
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
