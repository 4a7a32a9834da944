"""What attach.py measures: each function makes one entry of its JSON. Figures of iket are checked on the way.

A check that fails is a line of `wrong`, and attach.py ends with 1: a time of a run that lost count is no
figure. What run-iket did is written down as it was, and nothing is expected of it.
"""
import concurrent.futures
import copy
import os
import signal
import statistics
import time

import attach_run

RECORDS_A_WARP = 2  # begin and identity, beside its events (docs/design/recording.md)

# What each row runs. `sim`: enough to see that all of it works, on the software device.
GPU = {
    "launch": {"processes": 7, "processes_theirs": 1, "batches": 100, "launches": 200},
    "start": {"runs": 7, "runs_theirs": 1},
    # Two CTAs of 1,024 threads fill a SM: all rings are written.
    "stream": {"ctas": 2, "threads": 1024, "rates": [1e8, 2e8, 5e8, 1e9, 2e9, 0], "events": 1e8,
               "marks": 4294967280, "least_seconds": 0.1, "most_seconds": 2.0, "full_seconds": 0.2,
               "ring": "32K", "settle_ms": 1000, "touched": 8 << 30},
    "stopped": {"rate": 1e8, "seconds": 1.0, "after": 0.2, "for": 0.4},
    "drain": {"rounds": 2, "compute": [2, 1024, 1000, 10000, 3, 1000], "load": [2, 1024, 1000, 96, 3, 1000]},
    "counts": [20, 2000],
    "fault": [3, 5],
    "ends": {"launches": 250, "more": 1000, "ctas": 8448, "fmas": 160, "ring": "128K"},
    "many": {"launches": 1000, "ctas": 8448},
}
SIM = {
    "launch": {"processes": 2, "processes_theirs": 1, "batches": 4, "launches": 20},
    "start": {"runs": 2, "runs_theirs": 1},
    "stream": {"ctas": 0, "threads": 64, "rates": [1e7, 0], "events": 1e9, "marks": 4096,
               "least_seconds": 100, "most_seconds": 100, "full_seconds": 100, "ring": "8K", "settle_ms": 0,
               "touched": 8 << 20},
    "stopped": {"rate": 0, "seconds": 1000, "marks": 4000000, "after": 0.05, "for": 0.3},
    "drain": {"rounds": 1, "compute": [0, 64, 10, 64, 2, 0], "load": [0, 64, 10, 8, 2, 0]},
    "counts": [20, 200],
    "fault": [3, 5],
    "ends": {"launches": 3, "more": 3, "ctas": 66, "fmas": 16, "ring": "32K"},
    "many": {"launches": 3, "ctas": 66},
}


class Rows:
    def __init__(self, tools, options):
        self.tools = tools
        self.size = copy.deepcopy(SIM if tools.simulated else GPU)
        stream = self.size["stream"]
        if options.rates:
            stream["rates"] = [float(rate) for rate in options.rates.split(",")]
        stream["events"] = options.stream_events or stream["events"]
        stream["full_seconds"] = options.full_seconds or stream["full_seconds"]
        self.wrong = []

    def check(self, good, what):
        if not good:
            self.wrong.append(what)
        return good

    def ended(self, run, code=0):
        """Whether it ended as it should; it is said if not."""
        return self.check(run.code == code and not run.killed, run.said())

    def counted(self, what, run, summary):
        """kept + lost = written, and written = what the program says that it made."""
        if not self.check(summary is not None, f"{what}: no closing lines: {run.said()}"):
            return None
        events, warps = run.value("events"), run.value("warps")
        if not self.check(events is not None, f"{what}: the program did not say its events: {run.said()}"):
            return None
        expected = events + RECORDS_A_WARP * warps
        written, lost = summary["records_written"], summary["records_lost"]
        exact = written == expected and not summary["lost_is_lower_bound"]
        self.check(exact, f"{what}: {written} records written, not {expected:.0f}")
        if not lost:
            self.check(summary["events_kept"] == events and summary["warps"] == warps,
                       f"{what}: {summary['events_kept']} events of {summary['warps']} warps kept, none lost, "
                       f"and not {events:.0f} of {warps:.0f}")
        self.check(summary["events_kept"] <= events, f"{what}: more events kept than made")
        return {"events": events, "warps": warps, "written": written, "kept": written - lost, "lost": lost,
                "events_kept": summary["events_kept"], "warps_kept": summary["warps"], "exact": exact,
                "launches": summary["launches"]["all"], "device_mib": summary["device_memory_bytes"] / (1 << 20),
                "capture_bytes": sum(file["bytes"] for file in summary["files"])}

    def turns(self, count, turn_of):
        """Calls turn_of(0), turn_of(1), ...; where time ends before, what was measured until then counts. (So
        run-iket, which takes longest, is in the last turns.)"""
        for turn in range(count):
            try:
                turn_of(turn)
            except attach_run.NoTimeLeft as problem:
                self.wrong.append(f"turn {turn + 1} of {count}: {problem}")
                return

    # ---- Cost of a launch

    def launch(self):
        size = self.size["launch"]
        cores = sorted(os.sched_getaffinity(0))
        # Not the first, where interrupts are.
        words = ["launch", size["batches"], size["launches"], cores[len(cores) // 2]]
        runs = {"plain": [], "iket": [], "plain_nvidia": [], "run_iket": []}

        def add(mode, run):
            if self.ended(run):
                lines = [line for line in run.lines() if "launch" in line]
                runs[mode].append({f"{line['launch']} {line['time']}": line for line in lines})

        def turn_of(turn):
            add("plain", self.tools.plain(*words))
            run, summary = self.tools.profile(*words)
            self.counted("launch", run, summary)
            add("iket", run)
            if self.tools.run_iket and turn >= size["processes"] - size["processes_theirs"]:
                add("plain_nvidia", self.tools.plain(*words, nvidia=True))
                run, _ = self.tools.theirs(*words, limit=90)
                add("run_iket", run)
                add("plain_nvidia", self.tools.plain(*words, nvidia=True))

        self.turns(size["processes"], turn_of)
        return {"batches": size["batches"], "launches": size["launches"], "core": words[3],
                "processes": {mode: len(of) for mode, of in runs.items()},
                "ns": {mode: summed_up(of) for mode, of in runs.items() if of}}

    # ---- Wall time of a small program

    def start(self):
        size = self.size["start"]
        seconds = {"plain": [], "iket": [], "run_iket": []}
        self.tools.plain("start")  # what is not in the page cache yet is no part of it

        def turn_of(turn):
            run = self.tools.plain("start")
            if self.ended(run):
                seconds["plain"].append(run.seconds)
            run, summary = self.tools.profile("start")
            if self.ended(run) and self.counted("start", run, summary):
                seconds["iket"].append(run.seconds)
            if self.tools.run_iket and turn >= size["runs"] - size["runs_theirs"]:
                run, _ = self.tools.theirs("start", postprocess="all", limit=60)
                if self.ended(run):
                    seconds["run_iket"].append(run.seconds)

        self.turns(size["runs"], turn_of)
        return {mode: {"runs": len(of), "median": statistics.median(of), "least": min(of), "most": max(of)}
                for mode, of in seconds.items() if of}

    # ---- Streams

    def stream_one(self, what, rate, seconds, how, meanwhile=None, marks=None):
        size = self.size["stream"]
        words = ["stream", size["ctas"], size["threads"], f"{rate:.0f}", seconds, marks or size["marks"],
                 size["settle_ms"]]
        run, summary = self.tools.profile(*words, options=["--ring", size["ring"], "--overflow", how],
                                          limit=75, meanwhile=meanwhile)
        self.ended(run)
        counts = self.counted(what, run, summary)
        if not counts:
            return {"rate": rate, "failed": run.said()}
        ran = run.value("seconds")
        return {"rate": rate, "seconds": ran, "made_a_second": counts["events"] / ran,
                "kept_a_second": counts["events_kept"] / ran, "whole_run_seconds": run.seconds, **counts}

    def stream(self):
        size = self.size["stream"]
        memory = [self.tools.write_and_forget(size["touched"]) for _ in range(2)]
        rows = []
        for rate in size["rates"]:
            seconds = size["full_seconds"]
            if rate:
                seconds = max(size["least_seconds"], min(size["events"] / rate, size["most_seconds"]))
            try:
                rows.append(self.stream_one(f"stream at {rate:.3g} events/s", rate, seconds, "stream"))
            except attach_run.NoTimeLeft as problem:
                rows.append({"rate": rate, "failed": str(problem)})
        return {"ring": size["ring"], "scratch": self.tools.scratch_is, "memory": memory, "rows": rows}

    def stopped(self):
        """The reader is stopped while the kernel runs: what it misses must be counted, to the record."""
        size = self.size["stopped"]
        stops = []

        def meanwhile(process, path):
            until = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < until:
                with open(path, "rb") as file:
                    if b"running" in file.read():
                        break
                time.sleep(0.005)
            time.sleep(size["after"])
            if process.poll() is not None:
                return
            os.kill(process.pid, signal.SIGSTOP)
            try:
                time.sleep(size["for"])
            finally:
                os.kill(process.pid, signal.SIGCONT)
            stops.append(size["for"])

        row = self.stream_one("stream, its reader stopped", size["rate"], size["seconds"], "stream", meanwhile,
                              size.get("marks"))
        self.check(stops, "stream, its reader stopped: it ended before it was stopped")
        if "lost" in row:
            self.check(row["lost"] > 0, "stream, its reader stopped: nothing was lost, so nothing was shown")
        return {**row, "stopped_seconds": sum(stops)}

    # ---- What draining costs the kernel

    def drain(self):
        size = dict(self.size["drain"])
        rounds = size.pop("rounds")
        result = {}
        for kind, words in size.items():
            ms = {"plain": [], "keep-last": [], "stream": []}
            counts = {}
            for how in list(ms) * rounds:  # in turns, so that a GPU that warms up is no result
                if how == "plain":
                    run = self.tools.plain(kind, *words)
                else:
                    run, summary = self.tools.profile(kind, *words, options=["--overflow", how], limit=75)
                    counts[how] = self.counted(f"{kind}, {how}", run, summary)
                if self.ended(run):
                    ms[how] += run.values("ms")[1:]  # the first launch makes clocks and pages ready
            result[kind] = {how: {"ms": statistics.median(of), "least": min(of), "most": max(of)}
                            for how, of in ms.items() if of}
            for how, of in counts.items():
                if of and how in result[kind]:
                    launches = words[4]
                    result[kind][how]["lost"] = of["lost"]
                    result[kind][how]["made_a_second"] = of["events"] / launches / (result[kind][how]["ms"] / 1000)
        return result

    # ---- Where run-iket fails

    def cases(self):
        ours = {"counts": self.counts(), "fault": self.fault(), "ends": self.ends(), "many": self.many()}
        theirs = {}
        if self.tools.run_iket:
            # No times are taken of these three, and most of each is Python's start.
            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                futures = {name: pool.submit(function) for name, function in
                           (("counts", self.counts_theirs), ("fault", self.fault_theirs), ("ends", self.ends_theirs))}
                for name, future in futures.items():
                    try:
                        theirs[name] = future.result()
                    except Exception as problem:  # noqa: B902: what one did is no reason to lose the others
                        theirs[name] = {"failed": str(problem)}
            try:
                theirs["many"] = self.many_theirs()
            except Exception as problem:  # noqa: B902
                theirs["many"] = {"failed": str(problem)}
        return {"ours": ours, "theirs": theirs}

    def counts(self):
        """One run of each number: no other is needed before."""
        first, second = self.size["counts"]
        row = []
        for n in (first, second):
            run, summary = self.tools.profile("counts", n, n, options=["--ring", "128K"])
            self.ended(run)
            counts = self.counted(f"{n} iterations", run, summary)
            if counts:
                self.check(counts["lost"] == 0, f"{n} iterations: {counts['lost']} records lost")
            row.append({"iterations": n, "code": run.code, **(counts or {})})
        return row

    def counts_theirs(self):
        run, held = self.tools.theirs("counts", *self.size["counts"], postprocess="json", limit=60)
        return {"code": run.code, "finished": run.values("iterations"), "said": run.remark(), **held}

    def fault(self):
        run, summary = self.tools.profile("fault", *self.size["fault"])
        self.ended(run, 3)
        if not self.check(summary is not None, f"fault: no closing lines: {run.said()}"):
            return {"code": run.code, "error": run.value("error")}
        # Of the kernel that faulted, stores may have been under way; those that had finished must be whole.
        finished = self.size["fault"][0]
        self.check(summary["launches"]["complete"] >= finished, f"fault: {summary['launches']} are complete, not all "
                   f"of the {finished} launches that had finished")
        return {"code": run.code, "error": run.value("error"), "complete": summary["launches"]["complete"],
                "events": run.value("events"), "events_kept": summary["events_kept"], "warps": run.value("warps"),
                "warps_kept": summary["warps"], "written": summary["records_written"], "lost": summary["records_lost"]}

    def fault_theirs(self):
        run, held = self.tools.theirs("fault", *self.size["fault"], postprocess="json", limit=60)
        return {"code": run.code, "finished": run.values("error"), "said": run.remark(), **held}

    def ends(self):
        size = self.size["ends"]
        rows = []
        for options in ([], ["--ring", size["ring"]]):
            run, summary = self.tools.profile("ends", size["launches"], size["ctas"], size["fmas"], options=options)
            self.ended(run)
            counts = self.counted(" ".join(["begin and end", *options]), run, summary)
            rows.append({"options": " ".join(options), "code": run.code, "us": run.value("us"), **(counts or {})})
        return rows

    def ends_theirs(self):
        size = self.size["ends"]
        rows = []
        for launches in (size["launches"], size["more"]):
            run, held = self.tools.theirs("ends", launches, size["ctas"], size["fmas"],
                                          options=["--warp-trace"], limit=60)
            finished = run.values("us")
            rows.append({"launches": launches, "code": run.code, "finished": finished, "said": run.remark(), **held})
            if run.code != 0 or run.killed:
                break
        return rows

    def many(self):
        size = self.size["many"]
        words = ["many", size["launches"], size["ctas"]]
        clean = self.tools.plain(*words)
        self.ended(clean)
        run, summary = self.tools.profile(*words)
        self.ended(run)
        counts = self.counted("many launches", run, summary)
        return {"plain_mib": clean.value("used_mib"), "plain_us": clean.value("us"), "code": run.code,
                "used_mib": run.value("used_mib"), "us": run.value("us"), **(counts or {})}

    def many_theirs(self):
        size = self.size["many"]
        words = ["many", size["launches"], size["ctas"]]
        clean = self.tools.plain(*words, nvidia=True)
        run, held = self.tools.theirs(*words, limit=75)
        return {"plain_mib": clean.value("used_mib"), "plain_us": clean.value("us"), "code": run.code,
                "used_mib": run.value("used_mib"), "us": run.value("us"), "finished": run.values("us"),
                "said": run.remark(), **held}


def summed_up(processes):
    """Of each time: the lower quartile over batches of each process, and of those the least. A process as a
    whole is fast or slow by where its memory came to lie; the least of several is what can be compared."""
    result = {}
    for name in processes[0]:
        quartiles = [one[name]["quartile"] for one in processes if name in one]
        result[name] = {"least_quartile": min(quartiles), "median_quartile": statistics.median(quartiles),
                        "quartiles": quartiles, "least": min(one[name]["least"] for one in processes if name in one)}
    return result
