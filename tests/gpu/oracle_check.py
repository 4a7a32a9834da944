#!/usr/bin/env python3
"""Holds captures of the oracle against what its kernels logged themselves.

    oracle_check.py --iket IKET --oracle ORACLE --out FOLDER [CASE...]   run cases, then check them
    oracle_check.py --capture FILE --log LOG [--iket IKET]               check what was recorded

With --device sim the cases run on the software device. The check is the same.

It takes the rings apart on its own, from docs/format.md and docs/design/recording.md, and needs
Python's library alone. With --iket the C++ decoder's counts and durations are held against the same
log. One line a case; exit code 1 if any differs.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "python")]
sys.dont_write_bytecode = True
import iketcap  # noqa: E402

# Case: options of `iket profile`, and whether a second process wants the GPU at the same time.
CASES = {
    "full": ([], False),
    "divergent": ([], False),
    "loops": ([], False),
    "calls": ([], False),
    "exits": ([], False),
    "grid3d": ([], False),
    "payloads": ([], False),
    "values": ([], False),
    "driver": ([], False),
    "ranges": ([], False),
    "streams": ([], False),
    "laps": (["--ring", "4K"], False),
    "neighbour": ([], True),
}

KINDS = ["mark", "push", "pop", "range_begin", "range_end"]
PAYLOADS = {0: "none", 5: "i32", 6: "u32", 13: "f32"}
WIDE = (7, 14, 15, 16)  # types of 64 bits
TAG_TYPE, TAG_BEGIN, TAG_IDENTITY, TAG_MORE = 0x8000FC00, 0x80000400, 0x80000C00, 0x80001400
WORD = 0xFFFFFFFF

Warp = collections.namedtuple("Warp", "sm kernel begin identity end events")
Event = collections.namedtuple("Event", "clock label")


class Differs(Exception):
    """The first thing that is not as it was logged."""


def since(later, earlier):
    """Cycles from one 32-bit clock to a later one."""
    return (later - earlier) & WORD


# ---- What the kernels logged ----


class Log:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            head = json.loads(file.readline())
            self.case, self.declared = head["case"], [tuple(event) for event in head["events"]]
            self.launches, self.warps = [], []
            for line in file:
                row = json.loads(line)
                if "kernel" in row:
                    self.launches.append(row)
                    continue
                launch = self.launches[-1]
                row["launch"] = launch
                row["key"] = (row["grid_id"], *row["cta"], row["warp"])
                row["events"] = [(self.label(number, payload), before, after)
                                 for number, payload, before, after in row["events"]]
                self.warps.append(row)

    def label(self, number, payload):
        name, kind, type_name = self.declared[number]
        return name, kind, type_name, payload if type_name != "none" else None

    def events(self):
        return sum(len(warp["events"]) for warp in self.warps)


# ---- What the rings hold (docs/design/recording.md, section 5) ----


class Rings:
    def __init__(self, capture):
        self.kernels = {kernel["index"]: kernel for kernel in capture.kernels}
        self.declared, self.inverted, self.words_of, self.records_of = {}, set(), {}, {}
        more = collections.defaultdict(list)
        for row in capture.attributes:
            if row["what"] == 2:
                more[row["image"], row["event"]].append(row["number"])
        for row in capture.declarations:
            payload, others = row["payload"] & 0x7F, more[row["image"], row["event"]]
            label = (row["name"], KINDS[row["kind"]], "values" if others else PAYLOADS.get(payload, "?"))
            self.words_of[row["event"]] = sum(2 if number in WIDE else 1 for number in (payload, *others))
            if others:  # two words a record
                self.records_of[label] = (self.words_of[row["event"]] + 1) // 2
            if row["payload"] & 0x80:
                self.inverted.add(row["event"])
            if self.declared.setdefault(row["event"], label) != label:
                raise Differs(f"two declarations of event {row['event']:#x}")
        self.warps, self.tails, self.written = [], [], collections.Counter()
        slots = {context["index"]: context["slots_per_sm"] for context in capture.contexts}
        for (context, ring), (written, header, records) in sorted(self.streams(capture).items()):
            sm = ring // slots[context]
            self.written[sm] += written
            self.walk(sm, ring, header, records)

    def records(self, warp):
        """How many a logged warp must have written: its begin, its identity, and those of its events."""
        return 2 + sum(self.records_of.get(label[:3], 1) for label, *_ in warp["events"])

    @staticmethod
    def streams(capture):
        """For each ring: bytes written, header, kept records in order."""
        found = {}
        for block in capture.rings:
            for row in block["rings"]:
                known = found.setdefault((block["context"], row["ring"]), [0, None, {}])
                known[:2] = row["written"], row["header"]
                for i, record in enumerate(row["records"]):
                    known[2][row["first"] + 16 * i] = record
        for key, (written, header, at) in found.items():
            kept = sorted(at)
            if kept and (kept[-1] + 16 != written or kept[-1] - kept[0] != 16 * (len(kept) - 1)):
                raise Differs(f"ring {key}: the kept records do not reach to its cursor {written}")
            if header[0] != written & WORD:
                raise Differs(f"ring {key}: cursor {header[0]}, {written} bytes written")
            found[key] = written, header, [at[position] for position in kept]
        return found

    def walk(self, sm, ring, header, records):
        kernel = begin = identity = None
        events, tags = [], []

        def close(end):
            for i, (tag, event) in enumerate(zip(tags, events)):
                if event.label[2] == "values":
                    name, kind, payload, words = event.label
                    digest = 0
                    for word in words[:self.words_of[tag]]:
                        digest = (digest * 31 + (word ^ WORD if tag in self.inverted else word)) & WORD
                    if len(words) < self.words_of[tag]:
                        raise Differs(f"ring {ring}: an event '{name}' with {len(words)} words of its values")
                    events[i] = event._replace(label=(name, kind, payload, digest))
            if identity is not None:
                self.warps.append(Warp(sm, kernel, begin, identity, end, events))
            elif events:  # its begin was lapped
                known = header[4:8] if end is header else None
                self.tails.append(Warp(sm, None, None, known, end, events))

        i = 0
        while i < len(records):
            clock, tag, low, high = records[i]
            if tag & TAG_TYPE == TAG_BEGIN:
                close(high)
                number = (tag & 0x3FF) | (tag & 0x7FFFFFFF) >> 16 << 10
                if number not in self.kernels:
                    raise Differs(f"ring {ring}: a warp of kernel number {number}, of none")
                if i + 1 == len(records) or records[i + 1][1] & TAG_TYPE != TAG_IDENTITY:
                    raise Differs(f"ring {ring}: a begin without identity")
                kernel, begin, identity = self.kernels[number], clock, records[i + 1]
                events, tags, i = [], [], i + 2
                continue
            if tag & TAG_TYPE == TAG_IDENTITY and i == 0:
                kernel, begin, identity = None, None, records[0]  # its begin was lapped
            elif tag & TAG_TYPE == TAG_MORE:
                # Of the event with its clock; that of the oldest may be lapped.
                mine = [event for event in events[-32:] if event.clock == clock]
                if mine:
                    mine[-1].label[3].extend((low, high))
                elif events:
                    raise Differs(f"ring {ring}: values of no event")
            elif tag in self.declared and self.declared[tag][2] == "values":
                events.append(Event(clock, (*self.declared[tag], [low, high])))
                tags.append(tag)
            elif tag in self.declared:
                tags.append(tag)
                name, kind, payload = self.declared[tag]
                if tag in self.inverted:
                    low ^= WORD
                events.append(Event(clock, (name, kind, payload,
                                            low if payload != "none" else None)))
            else:
                raise Differs(f"ring {ring}: a record with tag {tag:#x}, which nothing declares")
            i += 1
        if identity is None and events:
            close(header)
        else:
            close(header[1])


def warp_key(identity, block):
    tid, yz = identity[1], identity[2]
    x, y, z = tid & 0x3FF, tid >> 16 & 0x3FF, tid >> 26 & 0x1F
    return (identity[3], identity[0], yz & 0xFFFF, yz >> 16,
            (x + block[0] * (y + block[1] * z)) // 32)


# ---- One against the other ----


def text(label):
    name, kind, type_name, payload = label
    return f"{kind} '{name}'" + ("" if payload is None else f" {type_name} {payload:#x}")


def compare_events(who, logged, recorded, begin):
    """Every logged event was recorded once, between the clocks on both sides of it, in order."""
    if len(logged) != len(recorded):
        raise Differs(f"{who}: {len(logged)} events logged, {len(recorded)} recorded")
    clocks = [since(event.clock, begin) for event in recorded]
    for i in range(1, len(clocks)):
        if clocks[i] < clocks[i - 1]:
            raise Differs(f"{who}: event {i} is older than the one before it")
    # Groups of lanes that run in turns may log out of order: an entry is found by label and clock.
    by_label = collections.defaultdict(list)
    for label, before, after in logged:
        by_label[label].append((since(after, begin), since(before, begin)))
    for intervals in by_label.values():
        intervals.sort()
    for i, (event, clock) in enumerate(zip(recorded, clocks)):
        intervals = by_label[event.label]
        for k, (after, before) in enumerate(intervals):
            if before <= clock <= after:
                del intervals[k]
                break
        else:
            near = [text(label) for label, before, after in logged
                    if since(before, begin) <= clock <= since(after, begin)]
            raise Differs(f"{who}: event {i} is {text(event.label)} at {clock} cycles; logged then: "
                          f"{', '.join(near) or 'nothing'}; logged of this: {intervals[:3]}")


def tails_of_warps(tails, unseen, take):
    """For each tail, whose begin was lapped, the logged warp that it is the end of; no two have one.

    Which one is known if the tail is its ring's last. Else each is tried: warps of a CTA that ran in
    step can fit each other's tails too, so the tails are matched to warps together (Kuhn, 1955).
    """
    fitting = []
    for tail in tails:
        count, fits, problem = len(tail.events), [], None
        known = None if tail.identity is None else take(tail.identity)
        for mine in [known] if known else unseen.values():
            if mine["sm"] != tail.sm or len(mine["events"]) < count:
                continue
            try:
                compare_events(f"the last {count} events of warp {mine['key']}",
                               mine["events"][-count:], tail.events, mine["start"])
                fits.append(mine)
            except Differs as differs:
                problem = problem or differs
        if not fits:
            raise problem or Differs(f"{count} events on SM {tail.sm} that no warp logged")
        fitting.append(fits)

    tail_of, warp_of = {}, [None] * len(tails)

    def match(tail, tried):
        for mine in fitting[tail]:
            key = mine["key"]
            if key in tried:
                continue
            tried.add(key)
            if key not in tail_of or match(tail_of[key], tried):
                tail_of[key], warp_of[tail] = tail, mine
                return True
        return False

    for i, tail in enumerate(tails):
        if not match(i, set()):
            raise Differs(f"{len(tail.events)} events on SM {tail.sm} are of a warp whose end is there already")
    return warp_of


def compare(log, rings):
    """Returns how many warps and events were kept and lost."""
    logged = {warp["key"]: warp for warp in log.warps}
    if len(logged) != len(log.warps):
        raise Differs("two warps logged the same identity")
    blocks = {warp["grid_id"]: warp["launch"]["block"] for warp in log.warps}
    unseen, kept_events = dict(logged), 0

    def take(identity):
        if identity[3] not in blocks:
            raise Differs(f"a warp of grid {identity[3]}, which was not launched")
        key = warp_key(identity, blocks[identity[3]])
        if key not in unseen:
            raise Differs(f"warp {key} " + ("twice" if key in logged else "was not launched"))
        return unseen.pop(key)

    for warp in rings.warps:
        mine = take(warp.identity)
        who = f"{mine['launch']['kernel']} (grid, cta x y z, warp) {mine['key']}"
        if warp.kernel is not None and warp.kernel["mangled_name"] != mine["launch"]["kernel"]:
            raise Differs(f"{who}: recorded as a warp of {warp.kernel['mangled_name']}")
        if warp.sm != mine["sm"]:
            raise Differs(f"{who}: ran on SM {mine['sm']}, recorded on {warp.sm}")
        begin = mine["start"] if warp.begin is None else warp.begin
        compare_events(who, mine["events"], warp.events, begin)
        last = max((since(after, begin) for _, before, after in mine["events"]),
                   default=since(mine["start"], begin))
        if since(warp.end, begin) < last:
            raise Differs(f"{who}: ends {since(warp.end, begin)} cycles after its begin, "
                          f"logged an event at {last}")
        kept_events += len(warp.events)

    for mine in tails_of_warps(rings.tails, unseen, take):
        unseen.pop(mine["key"], None)
    kept_events += sum(len(tail.events) for tail in rings.tails)

    # What is not there was overwritten: to the byte, SM by SM.
    owed = collections.Counter()
    for warp in log.warps:
        owed[warp["sm"]] += 16 * rings.records(warp)
    for sm in sorted({*owed, *rings.written}):
        if owed[sm] != rings.written[sm]:
            raise Differs(f"SM {sm}: its warps wrote {owed[sm]} bytes, the rings count "
                          f"{rings.written[sm]}")
    return len(log.warps) - len(unseen), kept_events


def compare_decoder(log, rings, capture_path, iket, lost):
    """The same from the C++ decoder: warps, events, each name's number and sum of cycles."""
    done = subprocess.run([iket, "report", "--all", "--json", capture_path], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    if done.returncode != 0:
        raise Differs(f"iket report: exit code {done.returncode}: {done.stderr.decode()[:300]}")
    report = json.loads(done.stdout)
    counters = report["trust"]["counters"]
    written = sum(rings.records(warp) for warp in log.warps)
    if counters["records_written"] != written:
        raise Differs(f"iket report: {counters['records_written']} records written, not {written}")
    if lost:
        return
    expected = {"warps": len(log.warps), "events": log.events()}
    for key, value in expected.items():
        if report["trust"][key] != value:
            raise Differs(f"iket report: {report['trust'][key]} {key}, logged {value}")
    launches = report["trust"]["launches"]
    if launches["complete"] != len(log.launches):
        raise Differs(f"iket report: {launches}, launched {len(log.launches)}")
    names = collections.Counter()
    for warp in log.warps:
        for (name, kind, _, _), _, _ in warp["events"]:
            if kind in ("mark", "push", "range_begin"):
                names[(warp["launch"]["kernel"], kind != "mark", name)] += 1
    found = collections.Counter()
    for row in report["ranges"]:
        found[(row["kernel"], True, row["name"])] += row["n"] + row["unclosed"]
    for row in report["marks"]:
        found[(row["kernel"], False, row["name"])] += row["n"]
    if names != found:
        raise Differs(f"iket report: counts {sorted((found - names).items())[:3]} too many, "
                      f"{sorted((names - found).items())[:3]} missing")


def check(log_path, capture_path, iket):
    """One line about a case, and whether all is equal."""
    log = None
    try:
        log = Log(log_path)
        with open(capture_path, "rb") as file:
            capture = iketcap.read(file.read())
        damage = {name: value for name, value in vars(capture.damage).items()
                  if value and name != "chunks_whole"}
        if damage:
            raise Differs(f"the capture is damaged: {damage}")
        refused = [(kernel["mangled_name"], kernel["refusal"]) for kernel in capture.kernels
                   if kernel["state"] == 2]
        if refused:
            raise Differs(f"refused: {refused[0][0]}: {refused[0][1]}")
        rings = Rings(capture)
        warps, events = compare(log, rings)
        lost = events != log.events() or warps != len(log.warps)
        if iket:
            compare_decoder(log, rings, capture_path, iket, lost)
        kept = f", kept {warps} and {events}, the rest counted as lost" if lost else ""
        return (f"case {log.case}: {len(log.warps)} warps, {log.events()} events{kept}, equal", True)
    except (Differs, OSError, iketcap.NotACapture, ValueError, KeyError) as problem:
        case = log.case if log else os.path.basename(log_path)
        return f"case {case}: DIFFERS: {type(problem).__name__}: {problem}", False


# ---- Running them ----

# Seconds that a case may take. Under sanitizers the software device is slow.
LIMITS = {"gpu": 90, "sim": 300}


def alone(iket, device):
    """The environment in which a program finds the device without `iket profile`."""
    if device != "sim":
        return None
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(iket)))
    return {**os.environ, "LD_LIBRARY_PATH": os.path.join(prefix, "lib", "iket-sim")}


def record(case, arguments):
    """Runs a case under `iket profile`; returns its log and capture, or says why there is none."""
    options, neighbour = CASES[case]
    limit = LIMITS[arguments.device]
    folder, log = os.path.join(arguments.out, case), os.path.join(arguments.out, case + ".log")
    beside = None
    if neighbour:
        beside = subprocess.Popen([arguments.oracle, "--neighbour", str(limit + 10)],
                                  env=alone(arguments.iket, arguments.device))
    try:
        done = subprocess.run(
            [arguments.iket, "profile", "-o", folder, "--clobber", "--export", "none", "--device",
             arguments.device, *options, "--", arguments.oracle, case, log],
            check=False, timeout=limit, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except subprocess.TimeoutExpired:
        return f"case {case}: no end after {limit} s", None, None
    finally:
        if beside:
            alone_too_soon = beside.poll()
            beside.kill()
            beside.wait()
    if beside and alone_too_soon is not None:
        return f"case {case}: the neighbour ended with {alone_too_soon} before it", None, None
    with open(os.path.join(arguments.out, case + ".txt"), "wb") as file:
        file.write(done.stderr)
    captures = glob.glob(os.path.join(folder, "*.iketcap"))
    if done.returncode != 0 or len(captures) != 1 or not os.path.exists(log):
        tail = done.stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
        return (f"case {case}: exit code {done.returncode}, {len(captures)} captures: "
                f"{' | '.join(tail)}", None, None)
    return None, log, captures[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iket", help="the program iket")
    parser.add_argument("--oracle", help="the program oracle")
    parser.add_argument("--out", help="folder for logs and captures")
    parser.add_argument("--device", choices=["gpu", "sim"], default="gpu",
                        help="where the cases run: a GPU, or the software device")
    parser.add_argument("--capture", help="a capture to check")
    parser.add_argument("--log", help="the oracle's log of the same run")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    arguments = parser.parse_args()
    if arguments.capture and arguments.log:
        line, equal = check(arguments.log, arguments.capture, arguments.iket)
        print(line)
        return 0 if equal else 1
    if not (arguments.iket and arguments.oracle and arguments.out):
        parser.error("give --capture and --log, or --iket, --oracle and --out")
    unknown = [case for case in arguments.cases if case not in CASES]
    if unknown:
        parser.error(f"no case {unknown[0]}; there are: {', '.join(CASES)}")
    os.makedirs(arguments.out, exist_ok=True)
    all_equal = True
    with concurrent.futures.ProcessPoolExecutor() as pool:
        checks = []
        for case in arguments.cases or CASES:
            problem, log, capture = record(case, arguments)
            if problem:
                print(problem, flush=True)
                all_equal = False
            else:
                checks.append(pool.submit(check, log, capture, arguments.iket))
        for waiting in checks:
            line, equal = waiting.result()
            print(line, flush=True)
            all_equal = all_equal and equal
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main())
