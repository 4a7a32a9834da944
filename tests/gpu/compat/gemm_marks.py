#!/usr/bin/env python3
"""Writes a copy of CUTLASS's persistent GEMM for Hopper with IKET's marks in it.

    gemm_marks.py dense_gemm_persistent.py OUT.py

The example is examples/python/CuTeDSL/cute/hopper/kernel/dense_gemm/dense_gemm_persistent.py of NVIDIA/cutlass; its
licence is its own, so neither it nor the copy is part of this repository. Four ranges a k-step: `acquire` and `issue` in
the warp that loads, `wait` and `mma` in all warps that multiply; `epilogue` once a tile. The kernel of the copy has a name
of its own, so that both can run in one process. Ends with 2, and says what it looked for, where the example is not the one
that it knows.
"""
import argparse
import re
import sys

IKET = "cute.experimental.iket"


class ChangedError(Exception):
    """The example is not as it was."""


def replace(text, old, new, times=1):
    """`text` with `old` (whole lines) replaced; it must be there so many times."""
    found = text.count(old)
    if found != times:
        raise ChangedError(f"found {found} times and not {times}:\n{old}")
    return text.replace(old, new)


def ranged(name, lines):
    """The lines, which have one indentation at their ends, in a range of that name."""
    indentation = re.match(" *", lines).group()
    return f'{indentation}{IKET}.range_push("{name}")\n{lines}{indentation}{IKET}.range_pop()\n'


def around(text, name, first, last, times=1):
    """Ranges around what begins with the lines `first` and ends with the next `last`."""
    if text.count(first) != times:
        raise ChangedError(f"found {text.count(first)} times and not {times}:\n{first}")
    parts = text.split(first)
    for i in range(1, len(parts)):
        body, end, rest = parts[i].partition(last)
        if not end:
            raise ChangedError(f"not found behind\n{first}\nthe lines\n{last}")
        parts[i] = ranged(name, first + body + end) + rest
    return "".join(parts)


STEP = " " * 20  # the lines of a k-step are indented so far
TILE = " " * 16


def marked(text):
    """The example with marks."""
    text = replace(text, "    def kernel(\n", "    def kernel_marked(\n")
    text = replace(text, "        self.kernel(\n", "        self.kernel_marked(\n")
    line = f"{STEP}mainloop_pipeline.producer_acquire(mainloop_producer_state)\n"
    text = replace(text, line, ranged("acquire", line))
    text = around(text, "issue", f"{STEP}# Slice to global/shared memref to current k_tile\n",
                  f"{STEP}    mcast_mask=b_mcast_mask,\n{STEP})\n")
    line = f"{STEP}mainloop_pipeline.consumer_wait(mainloop_consumer_read_state)\n"
    text = replace(text, line, ranged("wait", line), times=2)
    # The first k-step of a tile does not wait for its own product; the others wait for the one before.
    prologue, steady, rest = split_at_loop(text)
    wgmma = f"{STEP}# WGMMA\n"
    prologue = around(prologue, "mma", wgmma, f"{STEP}cute.nvgpu.warpgroup.commit_group()\n")
    steady = around(steady, "mma", wgmma, f"{STEP}cute.nvgpu.warpgroup.wait_group(k_pipe_mmas)\n")
    return prologue + steady + around(rest, "epilogue", f"{TILE}# Epilogue\n",
                                      f"{TILE}    self.epilog_sync_barrier.arrive_and_wait()\n\n"
                                      f"{TILE}tile_sched.advance_to_next_work()\n")


def split_at_loop(text):
    """What is before the loop over the other k-steps of a tile, the loop, and what is behind it."""
    loop = f"{TILE}for k_tile in range(prologue_mma_cnt, k_tile_cnt):\n"
    behind = f"{TILE}cute.nvgpu.warpgroup.wait_group(0)\n"
    for lines in (loop, behind):
        if text.count(lines) != 1:
            raise ChangedError(f"found {text.count(lines)} times and not once:\n{lines}")
    begin, end = text.index(loop), text.index(behind)
    return text[:begin], text[begin:end], text[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("example")
    parser.add_argument("out")
    options = parser.parse_args()
    with open(options.example, encoding="utf-8") as file:
        text = file.read()
    try:
        result = marked(text)
    except ChangedError as error:
        print(f"gemm_marks: {options.example} is not the example that this program knows: {error}", file=sys.stderr)
        return 2
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
