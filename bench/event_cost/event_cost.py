#!/usr/bin/env python3
"""What an event costs a warp, in SM cycles: the table of docs/benchmarks/event_cost.md."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir)]
import gpu_table  # noqa: E402

ROWS = [("mark", "mark"), ("mark_payload", "mark, 32-bit payload"), ("mark_payload_64", "mark, 64-bit payload"),
        ("mark_two", "mark, two 32-bit values"), ("mark_four", "mark, four 32-bit values"),
        ("group", "mark of a group, by the warp that speaks"), ("group_silent", "the same, by a warp that does not"),
        ("flow", "`flow_out`"), ("push_pop", "push + pop, a pair"),
        ("range_payload", "scoped range, 32-bit payload"), ("token", "token, a pair"),
        ("token_payload", "token, a pair, both with 32-bit payload")]


def make(options, plain, collected):
    def cycles(lines):
        return {(row["mode"], row["warps_per_sm"]): row["cycles"] for row in lines if "mode" in row}

    base, on = cycles(plain), cycles(collected) if collected else None
    warps = sorted({count for _, count in base})

    def row(title, found, mode):
        return [title, *(f"{found[mode, n] - base['clean', n]:.1f}" for n in warps)]

    rows = []
    for mode, title in ROWS:
        rows.append(row(f"{title}: not collected", base, mode))
        if on:
            rows.append(row(f"{title}: **collected**", on, mode))
    rows.append(row("hand-written `clock64` log", base, "clock64_log"))
    rows.append(["the loop itself", *(f"{base['clean', n]:.1f}" for n in warps)])
    if on:
        rows.append(["the loop, beside collected kernels", *(f"{on['clean', n]:.1f}" for n in warps)])
    text = ("Extra SM cycles of one event (of a pair: of both) in a loop of 64 dependent FMAs, by warps "
            "a SM.\nMedian over warps, median of 7 launches, one CTA a SM; `clock64_log` is one lane "
            "writing 16 bytes.\n\n" + gpu_table.table(["event", *map(str, warps)], rows))
    gpu_table.write(options, "Cost of an event", plain[0], text,
                    {"plain": plain[1:], "collected": collected[1:] if collected else None})


if __name__ == "__main__":
    sys.exit(gpu_table.main(__doc__, "event_cost", make))
