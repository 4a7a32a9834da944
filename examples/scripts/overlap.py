"""How much of the time of one range another one is open, by warp, CTA or SM.

    python3 overlap.py FILE.trace.json RANGE OTHER [--by warp|cta|sm]

Of several warps a range counts as open while any of them has it open.
"""
import argparse
import collections
import json


def launches_of(trace):
    yield from trace["launches"]
    for key in sorted(trace["graphLaunches"]):
        yield from trace["graphLaunches"][key]


def union(intervals):
    """The same time without repetitions, in order."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def common(a, b):
    """The time that is in both."""
    total = i = j = 0
    while i < len(a) and j < len(b):
        total += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("range")
    parser.add_argument("other")
    parser.add_argument("--by", choices=("warp", "cta", "sm"), default="cta")
    arguments = parser.parse_args()
    with open(arguments.trace, encoding="utf-8") as file:
        trace = json.load(file)
    names, places = trace["stringTable"], trace["locationTable"]

    def group_of(number, place):
        sm, cta, warp = place["smId"], tuple(place["ctaId"]), place["warpId"]
        return {"sm": (sm,), "cta": (number, sm, cta), "warp": (number, sm, cta, warp)}[arguments.by]

    intervals = collections.defaultdict(lambda: collections.defaultdict(list))
    for number, launch in enumerate(launches_of(trace)):
        for entry in launch["ranges"]:
            group = group_of(number, places[entry["warpLocIdxs"][0]])
            intervals[group][names[entry["rangeNameIdx"]]].append((entry["startTs"], entry["endTs"]))

    print(f"{arguments.by:<28} {arguments.range:>12} {arguments.other:>12} {'both':>12} {'share':>7}")
    sums = [0, 0, 0]
    for group in sorted(intervals):
        first = union(intervals[group][arguments.range])
        second = union(intervals[group][arguments.other])
        if not first and not second:
            continue
        row = [sum(end - start for start, end in first), sum(end - start for start, end in second),
               common(first, second)]
        sums = [a + b for a, b in zip(sums, row)]
        share = f"{100 * row[2] / row[0]:.1f}%" if row[0] else "-"
        print(f"{' '.join(map(str, group)):<28} {row[0]:>12} {row[1]:>12} {row[2]:>12} {share:>7}")
    share = f"{100 * sums[2] / sums[0]:.1f}%" if sums[0] else "-"
    print(f"{'all':<28} {sums[0]:>12} {sums[1]:>12} {sums[2]:>12} {share:>7}")


if __name__ == "__main__":
    main()
