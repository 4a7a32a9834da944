"""How long ranges took, by name: count, total, mean, median, 99th percentile and maximum.

    python3 range_stats.py FILE.trace.json [--kernel TEXT]
"""
import argparse
import collections
import json


def launches_of(trace):
    yield from trace["launches"]
    for key in sorted(trace["graphLaunches"]):
        yield from trace["graphLaunches"][key]


def percentile(ordered, share):
    """The smallest duration that at least so many do not exceed."""
    rank = -(-len(ordered) * share // 100)
    return ordered[max(rank, 1) - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--kernel", default="", help="only launches whose kernel's name has this in it")
    arguments = parser.parse_args()
    with open(arguments.trace, encoding="utf-8") as file:
        trace = json.load(file)
    names = trace["stringTable"]
    durations = collections.defaultdict(list)
    for launch in launches_of(trace):
        if arguments.kernel in launch["kernelName"]:
            for entry in launch["ranges"]:
                durations[names[entry["rangeNameIdx"]]].append(entry["endTs"] - entry["startTs"])
    print(f"{'range':<32} {'count':>8} {'total ns':>12} {'mean':>10} {'p50':>8} {'p99':>8} {'max':>8}")
    for name, values in sorted(durations.items(), key=lambda item: (-sum(item[1]), item[0])):
        values.sort()
        print(f"{name:<32} {len(values):>8} {sum(values):>12} {sum(values) / len(values):>10.1f} "
              f"{percentile(values, 50):>8} {percentile(values, 99):>8} {values[-1]:>8}")


if __name__ == "__main__":
    main()
