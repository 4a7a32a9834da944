"""The kernel of triton_marks.py: a sum over rows, tile by tile."""

import iket_triton as iket
import triton
import triton.language as tl


@triton.jit
def sum_rows(x, y, columns, block: tl.constexpr):
    row = tl.program_id(0)
    iket.mark("row", row)
    total = tl.zeros([block], dtype=tl.int32)
    for tile in range(tl.cdiv(columns, block)):
        iket.begin("tile", tile)
        at = tile * block + tl.arange(0, block)
        total += tl.load(x + row * columns + at, mask=at < columns, other=0)
        iket.end("tile")
    iket.push("reduce")
    tl.store(y + row, tl.sum(total))
    iket.pop()
