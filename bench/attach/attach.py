#!/usr/bin/env python3
"""What attaching costs, ours beside NVIDIA's run-iket in one run: docs/benchmarks/attach.md.

    attach.py --tree TREE --out FOLDER [--run-iket BIN] [--only ROW,...]
    attach.py --render JSON [--into PAGE]

TREE has bin/iket and bin/bench/attach. FOLDER gets attach.json and attach.md, written again after each row,
so that a run that is cut short leaves what it measured. BIN is run-iket, or a command line that starts it
("python3 -m iket.cli.main"); PYTHONPATH is handed on. Rows: launch, start, cases, stream, stopped, drain.

With --device sim all is done in small on the software device, to see that it works.

Exit code: 0 done, 1 a count was wrong or a row was not measured, 2 no GPU, or wrong use.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import attach_run  # noqa: E402
import attach_rows  # noqa: E402
import attach_table  # noqa: E402

ROWS = ["launch", "start", "cases", "stream", "stopped", "drain"]
MARK = "<!-- What follows is attach.json, by attach.py --render. -->"


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", default=os.path.join(HERE, "..", ".."), help="folder that has bin")
    parser.add_argument("--out", help="folder for attach.json and attach.md")
    parser.add_argument("--run-iket", help="NVIDIA's run-iket; without it its column is empty")
    parser.add_argument("--only", help=f"rows, separated by commas, of {','.join(ROWS)}")
    parser.add_argument("--add", action="store_true", help="keeps the other rows of the attach.json in FOLDER")
    parser.add_argument("--seconds", type=float, default=215, help="for all of it (default 215)")
    parser.add_argument("--rates", help="events a second of the streams, 0 for as fast as it can: 1e8,5e8,0")
    parser.add_argument("--stream-events", type=float, help="of a stream with a rate, about (default 1e8)")
    parser.add_argument("--full-seconds", type=float, help="of a stream as fast as it can (default 0.2)")
    parser.add_argument("--scratch", help="folder for captures while they are read (default: in memory)")
    parser.add_argument("--device", choices=["gpu", "sim"], default="gpu")
    parser.add_argument("--render", metavar="JSON", help="prints the tables of an attach.json, and does nothing else")
    parser.add_argument("--into", metavar="PAGE", help="with --render: puts them behind the mark in this page instead")
    options = parser.parse_args(arguments)
    options.rows = options.only.split(",") if options.only else ROWS
    unknown = [row for row in options.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row is called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if not options.render and not options.out:
        parser.error("--out is needed")
    return options


class Results:
    """attach.json and attach.md, whole at any time."""

    def __init__(self, options, head):
        self.path = os.path.join(options.out, "attach")
        self.data = {**head, "rows": {}, "row_seconds": {}, "not_measured": {}, "wrong": {}}
        if options.add:
            with open(self.path + ".json", encoding="utf-8") as file:
                old = json.load(file)
            self.data["run_iket"] |= old["run_iket"]
            for part in ("rows", "row_seconds", "not_measured", "wrong"):
                self.data[part] = {name: of for name, of in old[part].items() if name not in options.rows}

    def write(self):
        for path, text in ((".json", json.dumps(self.data, indent=1) + "\n"),
                           (".md", attach_table.render(self.data))):
            with open(self.path + path + ".new", "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(self.path + path + ".new", self.path + path)


def watch(seconds, tools):
    """Should a process be past killing (the driver can hold one), this one ends all the same."""
    def end():
        print("attach: time is over, and something does not end; what was measured is written", file=sys.stderr,
              flush=True)
        tools.close()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def head_of(tools, device):
    version = subprocess.run([tools.iket, "--version"], stdout=subprocess.PIPE, timeout=20, check=True)
    return {"title": "Attaching", "device": device, "simulated": tools.simulated,
            "iket": version.stdout.decode().strip(), "run_iket": tools.run_iket is not None, "cores": os.cpu_count()}


def measure(options, tools):
    first = tools.plain("start")
    if first.code != 0:
        print(f"attach: no GPU that can be used: {first.said()}", file=sys.stderr)
        return 2
    results = Results(options, head_of(tools, first.lines()[0]))
    rows = attach_rows.Rows(tools, options)
    for name in options.rows:
        began = time.monotonic()
        try:
            results.data["rows"][name] = getattr(rows, name)()
        except (attach_run.NoTimeLeft, OSError, ValueError, KeyError, TypeError, IndexError, ZeroDivisionError,
                subprocess.SubprocessError) as problem:
            if not isinstance(problem, attach_run.NoTimeLeft):
                traceback.print_exc()
            results.data["not_measured"][name] = f"{type(problem).__name__}: {problem}"
        results.data["row_seconds"][name] = round(time.monotonic() - began, 1)
        if rows.wrong:
            results.data["wrong"][name] = rows.wrong
            rows.wrong = []
        results.write()
        print(f"attach: {name} took {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    print(attach_table.render(results.data))
    return 1 if results.data["wrong"] or results.data["not_measured"] else 0


def render(options):
    with open(options.render, encoding="utf-8") as file:
        text = attach_table.render(json.load(file))
    if not options.into:
        print(text, end="")
        return 0
    with open(options.into, encoding="utf-8") as file:
        before, mark, _ = file.read().partition(MARK)
    if not mark:
        print(f"attach: {options.into} has no line '{MARK}'", file=sys.stderr)
        return 2
    with open(options.into, "w", encoding="utf-8") as file:
        file.write(f"{before}{mark}\n\n{text}")
    return 0


def main(arguments):
    options = options_of(arguments)
    if options.render:
        return render(options)
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    try:
        tools = attach_run.Tools(options)
    except OSError as problem:
        print(f"attach: {problem}", file=sys.stderr)
        return 2
    watch(options.seconds + 20, tools)
    signal.signal(signal.SIGTERM, lambda *_: (tools.close(), os._exit(1)))
    try:
        return measure(options, tools)
    except (OSError, ValueError, attach_run.NoTimeLeft, subprocess.SubprocessError) as problem:
        print(f"attach: {problem}", file=sys.stderr)
        return 2
    finally:
        tools.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
