"""Runs the scripts of examples/frameworks without and with `iket profile` and says where the two differ.

    frameworks_check.py --tree TREE --out OUT [--device sim] [--jobs N] [NAME...]

TREE has bin/iket, bin/examples and bin/tests. A script passes if what it prints is the same both times, and its
captures hold, together, exactly the launches and events that its closing line states, every launch complete,
none lost. OUT gets summary.txt, and for each script what both runs said. The exit code is 1 if one does not
pass, 2 if the call is wrong.
"""

import argparse
import concurrent.futures
import dataclasses
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../guest"))
from guest_matrix import CANNOT_RUN, TOO_LONG, execute  # noqa: E402: found by the line above

LIMIT_SECONDS = 140
STATED = re.compile(r"^ok: (\d+) launches, (\d+) events$", re.MULTILINE)
# What is of one run: times, and who ncu says is connected.
OF_ONE_RUN = re.compile(r"[\d.]+ (us|GB/s)|^==(PROF== (Connected|Disconnected|Report)|WARNING==).*\n", re.MULTILINE)
FAULTS = ("records_lost", "lost_is_lower_bound", "warps_holed", "warps_missing", "unmatched_ends", "unclosed_ranges",
          "launches_unmatched", "launches_unseen", "unknown_ids", "unknown_records", "suspect_rings", "chunks_damaged")


@dataclasses.dataclass
class Script:
    name: str
    command: list  # {tree}, {frameworks} and {where}, the run's folder, are filled in
    processes: int = 1  # that have a capture each
    ranked: bool = False  # a launcher that starts what stands behind it, `iket profile` or the program, for each rank
    stated: tuple = None  # (launches, events) of a program that does not say them itself


def python(name, **more):
    return Script(name, ["python3", f"{{frameworks}}/{name}.py"], **more)


SAXPY = ["{tree}/bin/examples/saxpy_marked", "--n", "4096", "--iterations", "2", "--warmup", "0"]
TWO_OF_SAXPY = (2, 2 * 128 * 6)  # 128 warps with one element a lane: all six events of saxpy.cuh once
PROCESS = "{tree}/bin/tests/guest/process_driver"
SCRIPTS = [
    Script("nvcc", SAXPY, stated=TWO_OF_SAXPY),
    python("torch_extension"),
    python("torch_graph"),
    python("torch_profiler"),
    python("triton_marks"),
    python("jax_ffi"),
    python("cupy_raw"),
    python("cupy_embed"),
    python("multiprocess", processes=4),
    Script("ranks", ["bash", "{frameworks}/ranks.sh"], processes=2, ranked=True),
    Script("streams", [PROCESS, "threads"], stated=(40, 4480)),
    Script("contexts", [PROCESS, "contexts"], stated=(6, 672)),
    Script("threads", ["{tree}/bin/tests/sim/sim_threads", "{tree}/bin/tests/sim/images/marked.cubin"],
           stated=(240, 960)),
    # One metric of one pass: ncu then runs every kernel once.
    Script("ncu", ["ncu", "--metrics", "gpu__time_duration.sum", "--clock-control", "none", "-f", "-o", "{where}/ncu",
                   *SAXPY], stated=TWO_OF_SAXPY),
]


def ncu_program():
    places = [shutil.which("ncu"), "/usr/local/cuda/bin/ncu", *sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"))]
    return next((place for place in places if place and os.access(place, os.X_OK)), "")


@dataclasses.dataclass
class Held:
    """What the captures of a run hold, together."""

    captures: int = 0
    launches: int = 0
    complete: int = 0
    events: int = 0
    lost: int = 0
    faults: list = dataclasses.field(default_factory=list)

    def add(self, report):
        trust = report["trust"]
        self.captures += 1
        self.launches += trust["launches"]["all"]
        self.complete += trust["launches"]["complete"]
        self.events += trust["events"]
        self.lost += trust["counters"]["records_lost"]
        self.faults += [f"{trust['counters'][name]} {name}" for name in FAULTS if trust["counters"][name]]
        self.faults += [f"refused: {one['kernel']}: {one['reason']}" for one in trust["refused"]]
        if trust["damage"]:
            self.faults.append(trust["damage"])


def compare(script, plain, profiled, held):
    """What is wrong, a line for each."""
    wrong = []
    for run, name in ((plain, "without"), (profiled, "with")):
        if run.code == TOO_LONG:
            wrong.append(f"{name} iket it did not end in {LIMIT_SECONDS} s")
        elif run.code != 0:
            said = run.output.decode(errors="replace")[-300:] + run.errors[-500:]
            wrong.append(f"{name} iket it ends with {run.code}: {said!r}")
    texts = [OF_ONE_RUN.sub("", run.output.decode(errors="replace")) for run in (plain, profiled)]
    if texts[0] != texts[1]:
        lines = [text.splitlines() for text in texts]
        wrong.append("standard output differs: without it alone "
                     f"{[line for line in lines[0] if line not in lines[1]][:5]}, with it alone "
                     f"{[line for line in lines[1] if line not in lines[0]][:5]}")
    stated = script.stated
    if stated is None:
        found = STATED.findall(texts[0])
        if len(found) != 1:
            return wrong + ["it does not say how many launches and events it makes"]
        stated = tuple(int(number) for number in found[0])
    launches, events = stated
    for number, wanted, what in ((held.captures, script.processes, "captures"), (held.launches, launches, "launches"),
                                 (held.complete, launches, "launches complete"), (held.events, events, "events")):
        if number != wanted:
            wrong.append(f"{number} {what}, not {wanted}")
    return wrong + held.faults


class Check:
    def __init__(self, options):
        self.options = options
        self.iket = os.path.join(options.tree, "bin/iket")
        self.profile = [self.iket, "profile", "--export", "none"]
        self.environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "IKET": self.iket}
        self.bare = dict(self.environment)
        if options.device == "sim":
            self.profile += ["--device", "sim"]
            paths = [os.path.join(options.tree, "lib/iket-sim"), os.environ.get("LD_LIBRARY_PATH", "")]
            self.bare["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)

    def words(self, script, where):
        words = script.command
        for name, path in (("{tree}", self.options.tree), ("{where}", where),
                           ("{frameworks}", os.path.join(self.options.tree, "bin/examples/frameworks"))):
            words = [word.replace(name, path) for word in words]
        if words[0] == "ncu":
            words[0] = ncu_program()
        return words

    def run(self, script):
        """(why it cannot run, or '', what is wrong, what its captures hold)."""
        where = os.path.join(self.options.out, script.name)
        shutil.rmtree(where, ignore_errors=True)
        os.makedirs(where)
        words = self.words(script, where)
        if not words[0]:
            return f"no program {script.command[0]}", [], Held()
        # What is compiled on the way stays in this folder, so that nobody finds what an older iket left.
        caches = {name: os.path.join(where, "cache", name) for name in
                  ("TORCH_EXTENSIONS_DIR", "CUPY_CACHE_DIR", "TRITON_CACHE_DIR")}
        captures = os.path.join(where, "iket.%q{RANK}" if script.ranked else "iket")
        profile = self.profile + ["-o", captures, "--"]
        plain = execute(words + (["env"] if script.ranked else []), where, "plain", {**self.bare, **caches},
                        LIMIT_SECONDS)
        why = self.cannot_run(script, plain)
        if why:
            return why, [], Held()
        profiled = execute(words + profile if script.ranked else profile + words, where, "profiled",
                           {**self.environment, **caches}, LIMIT_SECONDS)
        held = self.held(where)
        shutil.rmtree(os.path.join(where, "cache"), ignore_errors=True)
        return "", compare(script, plain, profiled, held), held

    @staticmethod
    def cannot_run(script, plain):
        said = plain.output.decode(errors="replace").strip()
        if plain.code == CANNOT_RUN:
            return said.splitlines()[-1] if said else "it does not say why"
        if script.name == "ncu" and "ERR_NVGPUCTRPERM" in said + plain.errors:
            return "ncu may not read counters here"
        return ""

    def held(self, where):
        held = Held()
        for capture in sorted(glob.glob(os.path.join(where, "iket*", "*.iketcap"))):
            done = subprocess.run([self.iket, "report", "--json", capture], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                held.faults.append(f"iket report ends with {done.returncode}: {done.stderr.strip()}")
                continue
            with open(f"{capture}.json", "w", encoding="utf-8") as file:
                file.write(done.stdout)
            held.add(json.loads(done.stdout))
            if os.path.getsize(capture) > (4 << 20):
                os.remove(capture)
        return held


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", required=True, type=os.path.abspath)
    parser.add_argument("--out", required=True, type=os.path.abspath)
    parser.add_argument("--device", choices=["gpu", "sim"], default="gpu")
    parser.add_argument("--jobs", type=int, default=4, help="scripts at a time")
    parser.add_argument("names", nargs="*", help="scripts to run, all if none is named")
    options = parser.parse_args()
    unknown = set(options.names) - {script.name for script in SCRIPTS}
    if unknown:
        parser.error(f"no script is called {', '.join(sorted(unknown))}")
    os.makedirs(options.out, exist_ok=True)
    check = Check(options)
    scripts = [script for script in SCRIPTS if not options.names or script.name in options.names]

    lines = []

    def say(text):
        print(text, flush=True)
        lines.append(text)

    began = time.monotonic()
    passed, failed, absent = [], [], []
    say(f"{'name':16} {'launches':>8} {'events':>9} {'lost':>5}  result")
    # ncu runs alone: it waits for, and holds up, whoever else uses the GPU.
    together = [script for script in scripts if script.name != "ncu"]
    alone = [script for script in scripts if script.name == "ncu"]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(zip(together, pool.map(check.run, together)))
    results += [(script, check.run(script)) for script in alone]
    for script, (why, wrong, held) in results:
        if why:
            absent.append(script.name)
            say(f"{script.name:16} {'':8} {'':9} {'':5}  not run: {why}")
            continue
        (failed if wrong else passed).append(script.name)
        say(f"{script.name:16} {held.launches:8} {held.events:9} {held.lost:5}  {'FAILED' if wrong else 'same'}")
        for reason in wrong:
            say(f"    {reason}")
    say(f"{len(passed)} of {len(passed) + len(failed)} pass, {len(absent)} not run, in "
        f"{time.monotonic() - began:.0f} s")
    with open(os.path.join(options.out, "summary.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    # A run in which nothing ran shows nothing.
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
