"""Runs the programs of attach.py: as they are, under `iket profile`, and under NVIDIA's run-iket.

Nothing here waits without end: every process has a limit, after which its whole group is killed, and all
of them together have a deadline. Python's own library alone.
"""
import dataclasses
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time

ENOUGH_ROOM = 8 << 30  # bytes, for captures of streams


groups = set()  # of processes that are running


class NoTimeLeft(Exception):
    pass


@dataclasses.dataclass
class Run:
    command: list
    code: int  # as a shell says it: 128 and the signal
    seconds: float
    killed: bool  # because it took too long
    out: str
    err: str

    def lines(self):
        """The JSON objects among the lines of the output; other lines belong to somebody else."""
        found = []
        for line in self.out.splitlines():
            if line.startswith("{"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass
        return found

    def value(self, key):
        """What the program printed last under this name (run-iket runs it twice), or None."""
        return next((line[key] for line in reversed(self.lines()) if key in line), None)

    def values(self, key):
        return [line[key] for line in self.lines() if key in line]

    def remark(self):
        """What it had to complain of, or the last that it said."""
        lines = [line for line in (self.out + "\n" + self.err).splitlines() if line.strip()]
        complaints = [line for line in lines if re.search(r"terminate|what\(\)|unavailable|error|fail|exception", line,
                                                          re.IGNORECASE) and not line.startswith("{")]
        return ("took too long: " if self.killed else "") + " / ".join((complaints or lines[-1:])[:3])[:400]

    def said(self):
        """How it ended and the last of what it said, for a person."""
        last = [line for line in (self.err + "\n" + self.out).splitlines() if line.strip()]
        return (f"{' '.join(self.command[-8:])}: " + ("took too long; " if self.killed else "")
                + f"exit code {self.code}: " + " / ".join(last[-3:])[-400:])


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def text_of(path):
    with open(path, "rb") as file:
        return file.read(4 << 20).decode("utf-8", "replace")


def execute(command, folder, limit, environment, meanwhile=None):
    """Runs in `folder`. `meanwhile(process, path of its standard output)` is called beside it. Files take what it
    says and not pipes, which a grandchild may hold open; a thread kills it, so that the wait itself is
    exact (Popen.wait with a limit looks only every 50 ms)."""
    paths = [os.path.join(folder, name) for name in ("stdout", "stderr")]
    killed = threading.Event()
    with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=err, start_new_session=True)
        groups.add(process.pid)

        def kill():
            killed.set()
            kill_group(process.pid)

        timer = threading.Timer(limit, kill)
        timer.daemon = True
        timer.start()
        try:
            if meanwhile:
                meanwhile(process, paths[0])
            code = process.wait()
        finally:
            timer.cancel()
            kill_group(process.pid)  # also what a tool that crashed left behind, with its device memory
            groups.discard(process.pid)
        seconds = time.monotonic() - began
    return Run(list(command), 128 - code if code < 0 else code, seconds, killed.is_set(),
               text_of(paths[0]), text_of(paths[1]))


class Tools:
    """What can be run, and where its captures go."""

    def __init__(self, options):
        self.tree = os.path.abspath(options.tree)
        self.simulated = options.device == "sim"
        self.iket = os.path.join(self.tree, "bin", "iket")
        programs = os.path.join(self.tree, "bin", "bench")
        self.program = os.path.join(programs, "attach_driver" if self.simulated else "attach")
        # There is one program that the software device can run; it serves a test, which brings its own run-iket.
        self.program_nvidia = self.program if self.simulated else os.path.join(programs, "attach_nvidia")
        self.run_iket = shlex.split(options.run_iket) if options.run_iket else None
        if self.run_iket and not shutil.which(self.run_iket[0]):
            raise FileNotFoundError(f"--run-iket: no program {self.run_iket[0]}")
        self.deadline = time.monotonic() + options.seconds
        self.scratch, self.scratch_is = self.find_scratch(options)

    @staticmethod
    def find_scratch(options):
        """A folder in memory, where the speed of a disk is no part of a figure."""
        for base in [options.scratch, "/dev/shm", options.out]:
            if base and os.path.isdir(base):
                if base != options.out and shutil.disk_usage(base).free < ENOUGH_ROOM:
                    continue
                return tempfile.mkdtemp(prefix="attach", dir=base), base
        return tempfile.mkdtemp(prefix="attach"), tempfile.gettempdir()

    def write_and_forget(self, size):
        """Bytes a second at which a file in the scratch folder comes to be, by one thread: what it costs to have
        memory for a capture. A virtual machine's may be made when it is touched first."""
        piece = bytes(1 << 20)
        path = os.path.join(self.scratch, "touched")
        began = time.monotonic()
        with open(path, "wb", buffering=0) as file:
            for _ in range(size // len(piece)):
                file.write(piece)
        rate = size / (time.monotonic() - began)
        os.unlink(path)
        return rate

    def environment(self):
        """Of programs that run without iket."""
        environment = dict(os.environ)
        if self.simulated:
            paths = [os.path.join(self.tree, "lib", "iket-sim"), os.environ.get("LD_LIBRARY_PATH", "")]
            environment["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
        return environment

    def left(self):
        return self.deadline - time.monotonic()

    def start(self, command, limit, meanwhile=None, keep=None, environment=None):
        """`{out}` in the command is a folder of its own; keep(folder) reads it before it goes."""
        if self.left() < min(limit, 3):
            raise NoTimeLeft(f"no time left for {os.path.basename(command[0])}")
        folder = tempfile.mkdtemp(dir=self.scratch)
        out = os.path.join(folder, "out")
        try:
            run = execute([word.replace("{out}", out) for word in command], folder, min(limit, self.left()),
                          environment or os.environ, meanwhile)
            return (run, keep(out)) if keep else run
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def plain(self, *words, nvidia=False, limit=30):
        program = self.program_nvidia if nvidia else self.program
        return self.start([program, *map(str, words)], limit, environment=self.environment())

    def profile(self, *words, options=(), limit=60, meanwhile=None):
        """The run, and the closing lines of `iket profile` as a dictionary (None if there were none)."""
        command = [self.iket, "profile", "--json", "--export", "none", "-o", "{out}"]
        command += ["--device", "sim"] if self.simulated else []
        run = self.start([*command, *options, "--", self.program, *map(str, words)], limit, meanwhile)
        return run, self.summary(run)

    @staticmethod
    def summary(run):
        for line in reversed(run.err.splitlines()):
            if line.startswith("{"):
                try:
                    return json.loads(line)
                except ValueError:
                    return None
        return None

    def theirs(self, *words, options=(), postprocess="none", limit=60):
        """The run, and what its trace holds: files, and with postprocess="json" launches, marks and ranges."""
        command = [*self.run_iket, "-o", "{out}", "profile", "--postprocess", postprocess, *options, "--",
                   self.program_nvidia, *map(str, words)]
        return self.start(command, limit, keep=self.read_theirs, environment=self.environment())

    @staticmethod
    def read_theirs(out):
        held = {"files": 0, "bytes": 0, "launches": 0, "marks": 0, "ranges": 0, "traces": 0}
        for path in glob.glob(os.path.join(out, "**", "*"), recursive=True):
            if not os.path.isfile(path):
                continue
            held["files"] += 1
            held["bytes"] += os.path.getsize(path)
            if path.endswith(".trace.json") or os.path.basename(path) == "trace.json":
                try:
                    with open(path, encoding="utf-8") as file:
                        trace = json.load(file)
                except (OSError, ValueError):
                    continue
                held["traces"] += 1
                for launch in trace.get("launches", []):
                    held["launches"] += 1
                    held["marks"] += len(launch.get("markers", []))
                    held["ranges"] += len(launch.get("ranges", []))
        return held

    def close(self):
        for group in list(groups):
            kill_group(group)
        shutil.rmtree(self.scratch, ignore_errors=True)
