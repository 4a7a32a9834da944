"""A picture of one launch: a row a warp, a bar a range, a tick a marker.

    python3 timeline.py FILE.trace.json OUT [--launch N] [--cta X,Y,Z] [--svg]

With matplotlib OUT may have any ending that it knows (.png, .pdf); without it, or with --svg, OUT is
an SVG.
"""
import argparse
import json
import zlib
from xml.sax.saxutils import escape

try:
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    pyplot = None

PALETTE = ("#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7",
           "#9c755f", "#bab0ac")
LEFT, WIDTH, ROW, LANE = 190, 1000, 26, 9


def colour_of(name):
    return PALETTE[zlib.crc32(name.encode()) % len(PALETTE)]


def with_lanes(bars):
    """Bars that overlap are drawn below each other: (lane, start, end, name)."""
    ends = []
    for start, end, name in sorted(bars, key=lambda bar: (bar[0], -bar[1], bar[2])):
        lane = next((i for i, last in enumerate(ends) if last <= start), len(ends))
        ends[lane:lane + 1] = [max(end, start + 1)]
        yield lane, start, end, name


def rows_of(trace, launch, cta):
    """By SM, CTA and warp: (label, bars, ticks), times since the launch's first warp began."""
    names, places = trace["stringTable"], trace["locationTable"]
    first = min(life["startTs"] for life in launch["warpLifetimes"])
    bars, ticks = {}, {}
    for entry in launch["ranges"]:
        bars.setdefault(entry["warpLocIdxs"][0], []).append(
            (entry["startTs"] - first, entry["endTs"] - first, names[entry["rangeNameIdx"]]))
    for marker in launch["markers"]:
        ticks.setdefault(marker["locIdx"], []).append(
            (marker["timestamp"] - first, names[marker["markerNameIdx"]]))

    def place_key(row):
        place = places[row]
        return place["smId"], place["ctaId"], place["warpId"]

    for row in sorted({life["locIdx"] for life in launch["warpLifetimes"]}, key=place_key):
        sm, cta_id, warp = place_key(row)
        if cta is None or cta_id == cta:
            label = f"SM {sm} CTA {','.join(map(str, cta_id))} warp {warp}"
            yield label, list(with_lanes(bars.get(row, []))), sorted(ticks.get(row, []))


def draw_svg(rows, title, out):
    end = max([bar[2] for _, bars, _ in rows for bar in bars] +
              [tick[0] for _, _, ticks in rows for tick in ticks] + [1])
    heights = [max([ROW] + [LANE * (bar[0] + 1) + 6 for bar in bars]) for _, bars, _ in rows]
    height = 30 + sum(heights) + 30
    shapes = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" '
              'font-family="sans-serif" font-size="11">', f'<text x="4" y="18">{escape(title)}</text>']
    top = 30
    for (label, bars, ticks), row_height in zip(rows, heights):
        shapes.append(f'<text x="4" y="{top + 14}">{escape(label)}</text>')
        for lane, start, stop, name in bars:
            x, width = LEFT + WIDTH * start / end, max(WIDTH * (stop - start) / end, 0.8)
            shapes.append(f'<rect x="{x:.2f}" y="{top + LANE * lane + 3}" width="{width:.2f}" height="{LANE - 1}" '
                          f'fill="{colour_of(name)}"><title>{escape(name)}: {stop - start} ns</title></rect>')
        for when, name in ticks:
            x = LEFT + WIDTH * when / end
            shapes.append(f'<path d="M{x:.2f} {top}v{row_height - 2}" stroke="{colour_of(name)}">'
                          f'<title>{escape(name)} at {when} ns</title></path>')
        top += row_height
    for i in range(5):
        shapes.append(f'<text x="{LEFT + WIDTH * i / 4:.2f}" y="{top + 18}">{end * i / 4:.0f} ns</text>')
    shapes.append("</svg>\n")
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(shapes))


def draw_matplotlib(rows, title, out):
    figure, axes = pyplot.subplots(figsize=(14, 1 + 0.35 * len(rows)))
    seen = set()
    for number, (_, bars, ticks) in enumerate(rows):
        lanes = 1 + max([bar[0] for bar in bars], default=0)
        for lane, start, stop, name in bars:
            axes.barh(number - 0.4 + 0.8 * lane / lanes, max(stop - start, 1), 0.7 / lanes, left=start, align="edge",
                      color=colour_of(name), label="_" if name in seen else name)
            seen.add(name)
        for when, name in ticks:
            axes.plot(when, number, "|", color=colour_of(name), label="_" if name in seen else name)
            seen.add(name)
    axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
    axes.invert_yaxis()
    axes.set_xlabel("ns")
    axes.set_title(title)
    if seen:
        axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("out")
    parser.add_argument("--launch", type=int, default=0, help="which of the trace's launches; by default the first")
    parser.add_argument("--cta", help="only this one, as X,Y,Z")
    parser.add_argument("--svg", action="store_true", help="an SVG, also where matplotlib is installed")
    arguments = parser.parse_args()
    with open(arguments.trace, encoding="utf-8") as file:
        trace = json.load(file)
    launch = trace["launches"][arguments.launch]
    cta = [int(part) for part in arguments.cta.split(",")] if arguments.cta else None
    rows = list(rows_of(trace, launch, cta))
    title = f"{launch['kernelName']}, grid {launch['gridId']}"
    draw = draw_svg if arguments.svg or pyplot is None else draw_matplotlib
    draw(rows, title, arguments.out)
    print(f"{arguments.out}: {len(rows)} warps, {sum(len(bars) for _, bars, _ in rows)} ranges, "
          f"{sum(len(ticks) for _, _, ticks in rows)} markers")


if __name__ == "__main__":
    main()
