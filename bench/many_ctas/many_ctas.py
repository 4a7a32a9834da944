#!/usr/bin/env python3
"""What recording costs kernels of many short CTAs: the table of docs/benchmarks/many_ctas.md."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir)]
import gpu_table  # noqa: E402

# NVIDIA's run-iket 4.8.1 on kernels of these shapes, from another run on another H200: clean and
# collected. 160 FMA is its --warp-trace; with 800 it crashed, the others were not measured.
RUN_IKET = {"empty, one mark": (7.0, 10.5), "10 x 16 FMA, 21 marks": (15.3, 26.7),
            "160 FMA": (16.8, 21.7), "<<<1, 32>>>": (4.0, 7.8)}


def make(options, plain, collected):
    def times(lines):
        return {(row["kernel"], row["marked"]): row["us"] for row in lines if "kernel" in row}

    base, on = times(plain), times(collected) if collected else None
    rows = []
    for kernel in dict.fromkeys(name for name, _ in base):
        clean = base[kernel, False]
        row = [f"`{kernel}`" if "<" in kernel else kernel, f"{clean:.2f}",
               f"{base[kernel, True]:.2f} ({gpu_table.percent(base[kernel, True], clean)})"]
        if on:
            row.append(f"{on[kernel, True]:.2f} ({gpu_table.percent(on[kernel, True], clean)})")
            row.append(f"{on[kernel, False]:.2f} ({gpu_table.percent(on[kernel, False], clean)})")
        theirs = RUN_IKET.get(kernel)
        row.append(f"{theirs[0]:.1f} -> {theirs[1]:.1f} ({gpu_table.percent(theirs[1], theirs[0])})"
                   if theirs else "-")
        rows.append(row)
    head = ["kernel", "clean", "marked, not collected",
            *(["**marked, collected**", "unmarked, while others are collected"] if on else []),
            "run-iket 4.8.1, quoted"]
    text = ("Microseconds a launch: mean of 200 back to back, least of 5 repeats; 8,448 CTAs x 256 "
            "threads, the last\nrow one warp. In the FMA kernels the mark is never reached: what they "
            "pay is begin and end of\nevery warp. Percent are over clean.\n\n" + gpu_table.table(head, rows))
    gpu_table.write(options, "Many short CTAs", plain[0], text,
                    {"plain": plain[1:], "collected": collected[1:] if collected else None})


if __name__ == "__main__":
    sys.exit(gpu_table.main(__doc__, "many_ctas", make))
