"""A Triton kernel with marks, by iket_triton.py.

    iket profile -- python3 triton_marks.py

Ends with 1 if the result is wrong, with 77 if a module is missing.
"""

import marked

ROWS, COLUMNS, BLOCK, WARPS, LAUNCHES = 64, 5000, 512, 4, 3
TILES = -(-COLUMNS // BLOCK)
EVENTS = ROWS * WARPS * (1 + 2 * TILES + 2)  # of a launch: the mark, the tiles, push and pop


def main():
    marked.need("torch", "triton")
    import torch
    from triton_kernel import sum_rows

    x = torch.arange(ROWS * COLUMNS, device="cuda", dtype=torch.int32).reshape(ROWS, COLUMNS) % 1009
    for _ in range(LAUNCHES):
        y = torch.zeros(ROWS, device="cuda", dtype=torch.int32)
        sum_rows[(ROWS,)](x, y, COLUMNS, block=BLOCK, num_warps=WARPS)
        if not torch.equal(y, x.sum(1).to(torch.int32)):
            marked.wrong("a row's sum")
    marked.ok(LAUNCHES, LAUNCHES * EVENTS)


if __name__ == "__main__":
    main()
