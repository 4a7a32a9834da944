#!/usr/bin/env python3
"""Host time of a launch and device memory taken: the table of docs/benchmarks/launch_cost.md."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir)]
import gpu_table  # noqa: E402


def make(options, plain, collected):
    runs = [("plain", plain)] + ([("profiled", collected)] if collected else [])

    def found(lines, key, value):
        return {row[key]: row[value] for row in lines if key in row}

    launch = {name: found(lines, "launch", "ns") for name, lines in runs}
    free = {name: found(lines, "free", "mib") for name, lines in runs}
    head = ["", *(name for name, _ in runs), *(["difference"] if collected else [])]

    def row(title, values, form):
        cells = [form.format(values[name]) for name, _ in runs]
        if collected:
            cells.append(("{:+" + form[2:]).format(values["profiled"] - values["plain"]))
        return [title, *cells]

    rows = [row(f"cuLaunchKernel, {kernel}, ns", {name: launch[name][kernel] for name, _ in runs},
                "{:.0f}") for kernel in launch["plain"]]
    rows += [row(f"free device memory, {when}, MiB", {name: free[name][when] for name, _ in runs},
                 "{:.0f}") for when in free["plain"]]
    text = ("Empty kernels of one warp in a program that has a marked and an unmarked one. Median of 101 "
            "batches of\n400 launches. Memory as cudaMemGetInfo says it: all processes on the GPU "
            "together.\n\n" + gpu_table.table(head, rows))
    gpu_table.write(options, "Cost of a launch", plain[0], text,
                    {"plain": plain[1:], "collected": collected[1:] if collected else None})


if __name__ == "__main__":
    sys.exit(gpu_table.main(__doc__, "launch_cost", make))
