#!/usr/bin/env python3
"""Do two .trace.json of the same program, by two collectors, say the same?

    compare_traces.py THEIRS OURS [--ns 64] [--event-ns 0] [--durations each|launches|names] [--title TEXT]

Launches go together by the name of the kernel and their order; in a launch the ranges and markers of each warp by name,
type and order. Payloads (type and bits), ids, colours and counts must be equal, and every duration, and every gap between
two consecutive events of a warp, within --ns; a range may differ by --event-ns more for each event inside it, since an event
costs what its collector makes it cost. The runs are two, so single durations may differ by what the machine did meanwhile:
--durations launches compares medians over the launches of a kernel, at each place of each warp; names, over
everything of one name in a kernel, for what waits for memory. Points in time are not compared: each collector has
its own axis. Ranges that begin in the same tick of THEIRS (32 ns) have no order there; they go together by duration.

Prints the differences (--show of each kind), a table of the ranges and a row with the sums. Ends with 0: the same, 1: not,
2: no trace.
"""
import argparse
import bisect
import collections
import gzip
import itertools
import json
import statistics
import sys

Event = collections.namedtuple("Event", "time payload")
Range = collections.namedtuple("Range", "begin end facts")
NONE = (0, 0)  # no payload
FACTS = ("range id", "colour", "scope", "event ids", "place of its end")


class InputError(Exception):
    """A file is not a trace."""


POINTER = 15  # its bits are of the process


def payload_of(entry):
    if not entry.get("payloadType", 0):
        return NONE
    return entry["payloadType"], 0 if entry["payloadType"] == POINTER else entry["payloadVal"]


class Warp:
    """What one warp of a launch did: its markers by name and its ranges by (name, type), in the order of time."""

    def __init__(self):
        self.markers, self.ranges, self.lives = collections.defaultdict(list), collections.defaultdict(list), []

    def times(self):
        """The points in time of all events, sorted."""
        found = [event.time for events in self.markers.values() for event, _ in events]
        for ranges in self.ranges.values():
            found += [time for row in ranges for time in (row.begin.time, row.end.time)]
        return sorted(found)


class Launch:
    """A launch, its warps by (CTA, warp)."""

    def __init__(self, trace, launch):
        names, places = trace["stringTable"], trace["locationTable"]
        self.kernel, self.grid_id = launch["kernelName"], launch["gridId"]
        self.shape = {key: launch[key] for key in ("gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY",
                                                   "blockDimZ", "singleClusterActive")}
        if launch["singleClusterActive"]:
            self.shape["enabledCluster"] = launch["enabledCluster"]
        self.warps = collections.defaultdict(Warp)
        for row in launch["markers"]:
            marker = Event(row["timestamp"], payload_of(row)), row["color"]
            self.at(places, row["locIdx"]).markers[names[row["markerNameIdx"]]].append(marker)
        for row in launch["ranges"]:
            # A range that was never closed has one event.
            begin, end = (row["internalEvents"] + [{"timestamp": row["endTs"], "eventId": None}])[:2]
            facts = (row["rangeId"], row["rangeColor"], row["rangeScope"],
                     tuple(event["eventId"] for event in row["internalEvents"]),
                     place_of(places, row["warpLocIdxs"][-1]))
            if not begin["timestamp"] == row["startTs"] <= row["endTs"] == end["timestamp"]:
                raise InputError(f"a range of {self.kernel} is not where its events are: {row}")
            found = Range(Event(row["startTs"], payload_of(begin)), Event(row["endTs"], payload_of(end)), facts)
            warp = self.at(places, row["warpLocIdxs"][0])
            warp.ranges[names[row["rangeNameIdx"]], row["rangeType"]].append(found)
        for row in launch["warpLifetimes"]:
            self.at(places, row["locIdx"]).lives.append(row["endTs"] - row["startTs"])
        for warp in self.warps.values():
            for events in warp.markers.values():
                events.sort(key=lambda marker: marker[0].time)
            for ranges in warp.ranges.values():
                ranges.sort(key=lambda row: (row.begin.time, row.end.time))

    def at(self, places, index):
        return self.warps[place_of(places, index)]


def place_of(places, index):
    return tuple(places[index]["ctaId"]), places[index]["warpId"]


def read(path):
    """Launches by (replay of a graph or "", kernel), in order."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            trace = json.load(file)
        launches = collections.defaultdict(list)
        groups = {"": trace["launches"], **trace["graphLaunches"]}
        for group, rows in groups.items():
            for row in rows:
                launch = Launch(trace, row)
                launches[group, launch.kernel].append(launch)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, IndexError, TypeError) as error:
        raise InputError(f"{path} is not a .trace.json: {type(error).__name__} {error}") from error
    return launches


def matched(theirs, ours):
    """Pairs of ranges of one name and type of a warp."""
    first = 0
    for _, tied in itertools.groupby(theirs, key=lambda row: row.begin.time):
        tied = list(tied)
        others = ours[first:first + len(tied)]
        first += len(tied)
        if len(tied) > 1:  # what has another payload at its beginning is told apart by it
            def length(row):
                return row.begin.payload, row.end.time - row.begin.time
            tied, others = sorted(tied, key=length), sorted(others, key=length)
        yield from zip(tied, others)


class Comparison:
    """Differences by kind, and what was measured of both, by what is compared with what."""

    def __init__(self, options):
        self.options = options
        self.differences = collections.defaultdict(list)
        self.counts = collections.Counter()
        self.durations = collections.defaultdict(lambda: ([], [], []))  # theirs, ours, events inside
        self.gaps = collections.defaultdict(lambda: ([], []))
        self.lives = collections.defaultdict(lambda: ([], []))
        self.longest = {"duration": 0, "gap": 0}

    def differ(self, kind, text):
        self.differences[kind].append(text)

    def equal(self, kind, where, theirs, ours):
        if theirs != ours:
            self.differ(kind, f"{where}: {theirs} and {ours}")

    def run(self, theirs, ours):
        for group, kernel in sorted({*theirs, *ours}):
            one, two = theirs.get((group, kernel), []), ours.get((group, kernel), [])
            name = f"{group} {kernel}".strip()
            if len(one) != len(two):
                self.differ("launch", f"{name}: {len(one)} launches and {len(two)}")
            for i, (left, right) in enumerate(zip(one, two)):
                self.launch(kernel, f"{name}, launch {i}", i if not group else (group, i), left, right)
        if not self.counts["launches"]:
            self.differ("launch", "no launch is in both traces")
        self.judge()

    def launch(self, kernel, where, number, theirs, ours):
        self.counts["launches"] += 1
        self.counts["launches with another gridId"] += theirs.grid_id != ours.grid_id
        self.equal("shape", where, theirs.shape, ours.shape)
        for place in sorted({*theirs.warps, *ours.warps}):
            here = f"{where}, CTA {','.join(map(str, place[0]))} warp {place[1]}"
            missing = [side for side, launch in (("theirs", theirs), ("ours", ours)) if place not in launch.warps]
            if missing:
                self.differ("warp", f"{here} is not in {missing[0]}")
                continue
            self.counts["warps"] += 1
            self.warp(kernel, here, number, place, theirs.warps[place], ours.warps[place])

    def key(self, number, place, kernel, *name):
        if self.options.durations == "names":
            return kernel, *name[:2]
        return (kernel, *name, place) if self.options.durations == "launches" else (kernel, *name, place, number)

    def warp(self, kernel, where, number, place, theirs, ours):
        self.equal("life", f"{where}: lifetimes", len(theirs.lives), len(ours.lives))
        for side, warp in enumerate((theirs, ours)):
            self.lives[kernel][side].extend(warp.lives)
        times = ours.times()
        events = []  # of ours, with their counterparts in theirs
        for name in sorted({*theirs.markers, *ours.markers}):
            one, two = theirs.markers.get(name, []), ours.markers.get(name, [])
            self.equal("marker", f"{where}: markers {name}", len(one), len(two))
            for i, ((left, colour), (right, other)) in enumerate(zip(one, two)):
                self.counts["markers"] += 1
                self.payload(f"{where}: marker {name} {i}", left, right)
                self.equal("colour", f"{where}: marker {name} {i}: colour", colour, other)
                events.append((right.time, left.time, name))
        for name in sorted({*theirs.ranges, *ours.ranges}):
            one, two = theirs.ranges.get(name, []), ours.ranges.get(name, [])
            self.equal("range", f"{where}: ranges {name[0]} of type {name[1]}", len(one), len(two))
            for i, (left, right) in enumerate(matched(one, two)):
                self.counts["ranges"] += 1
                here = f"{where}: range {name[0]} {i}"
                self.payload(f"{here}, its beginning", left.begin, right.begin)
                self.payload(f"{here}, its end", left.end, right.end)
                for fact, value, other in zip(FACTS, left.facts, right.facts):
                    self.equal(fact, f"{here}: {fact}", value, other)
                found = self.durations[self.key(number, place, kernel, *name, i)]
                found[0].append(left.end.time - left.begin.time)
                found[1].append(right.end.time - right.begin.time)
                found[2].append(max(0, bisect.bisect_left(times, right.end.time)
                                    - bisect.bisect_right(times, right.begin.time)))
                events.append((right.begin.time, left.begin.time, name[0]))
                events.append((right.end.time, left.end.time, f"end of {name[0]}"))
        events.sort()
        for i, (before, after) in enumerate(itertools.pairwise(events)):
            found = self.gaps[self.key(number, place, kernel, before[2], after[2], i)]
            found[0].append(after[1] - before[1])
            found[1].append(after[0] - before[0])

    def payload(self, where, theirs, ours):
        self.counts["payloads"] += theirs.payload != NONE
        self.equal("payload", f"{where}: payload (type, bits)", theirs.payload, ours.payload)

    def judge(self):
        for key, (theirs, ours, inside) in self.durations.items():
            allowed = self.options.ns + self.options.event_ns * statistics.median(inside)
            self.near("duration", key, theirs, ours, allowed)
        for key, (theirs, ours) in self.gaps.items():
            self.near("gap", key, theirs, ours, self.options.ns)

    def near(self, kind, key, theirs, ours, allowed):
        one, two = statistics.median(theirs), statistics.median(ours)
        # A range with events inside may differ by what these cost, which says nothing of how well times agree.
        if allowed <= self.options.ns:
            self.longest[kind] = max(self.longest[kind], abs(one - two))
        if abs(one - two) > allowed:
            self.differ(kind, f"{' '.join(map(str, key))}: {one:g} ns and {two:g} ns, {len(theirs)} compared, "
                              f"{allowed:g} allowed")

    def table(self):
        """A row of Markdown for each name of each kernel."""
        rows = collections.defaultdict(lambda: ([], [], [], []))
        for (kernel, name, *_), (theirs, ours, inside) in self.durations.items():
            row = rows[kernel, name]
            for i, values in enumerate((theirs, ours, inside)):
                row[i].extend(values)
            row[3].append(abs(statistics.median(theirs) - statistics.median(ours)))
        yield "| kernel | range | count | median, theirs | median, ours | largest difference compared | events inside |"
        yield "|---|---|---|---|---|---|---|"
        for (kernel, name), (theirs, ours, inside, apart) in rows.items():
            yield (f"| {kernel[:40]} | {name} | {len(ours)} | {statistics.median(theirs):g} ns | {statistics.median(ours):g} ns "
                   f"| {max(apart):g} ns | {statistics.median(inside):g} |")
        for kernel, (theirs, ours) in self.lives.items():
            if theirs and ours:
                yield (f"| {kernel[:40]} | (life of a warp, not judged) | {len(ours)} | {statistics.median(theirs):g} ns "
                       f"| {statistics.median(ours):g} ns | | |")

    def sums(self):
        """The row of the whole comparison."""
        total = sum(map(len, self.differences.values()))
        counts = " | ".join(f"{self.counts[what]:,}" for what in ("launches", "warps", "ranges", "markers", "payloads"))
        result = "same" if not total else f"**{total:,} differences**"
        return (f"| {self.options.title} | {counts} | {self.longest['duration']:g} ns | {self.longest['gap']:g} ns "
                f"| {result} |")


HEADER = ("| program | launches | warps | ranges | markers | payloads | largest difference of a duration | of a gap | result |\n"
          "|---|---|---|---|---|---|---|---|---|")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("theirs")
    parser.add_argument("ours")
    parser.add_argument("--ns", type=float, default=64, help="by how much a duration or a gap may differ")
    parser.add_argument("--event-ns", type=float, default=0, help="and a range more for each event in it")
    parser.add_argument("--durations", choices=("each", "launches", "names"), default="each")
    parser.add_argument("--title", default="traces")
    parser.add_argument("--show", type=int, default=5, help="differences of each kind to print")
    options = parser.parse_args(arguments)
    comparison = Comparison(options)
    try:
        comparison.run(read(options.theirs), read(options.ours))
    except InputError as error:
        print(f"compare_traces: {error}", file=sys.stderr)
        return 2
    for kind, found in comparison.differences.items():
        for text in found[:options.show]:
            print(f"difference ({kind}): {text}")
        if len(found) > options.show:
            print(f"difference ({kind}): and {len(found) - options.show} more")
    other = comparison.counts["launches with another gridId"]
    if other:
        print(f"note: {other} launches have another gridId")
    for line in comparison.table():
        print(line)
    print(f"\n{HEADER}\n{comparison.sums()}")
    return 1 if comparison.differences else 0


if __name__ == "__main__":
    sys.exit(main())
