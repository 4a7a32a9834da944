"""The kernel of torch_extension.py in a CUDA graph: every replay is recorded as launches of its own.

    iket profile -- python3 torch_graph.py

Ends with 1 if the result is wrong, with 77 if something is missing to build it.
"""

import marked
import torch_extension as extension

REPLAYS, NODES = 10, 2


def main():
    built = extension.library()
    import torch

    x, weight, y = extension.arrays()
    again = torch.zeros_like(y)
    # A first launch outside of the capture: the runtime loads the code then, which a capture forbids.
    extension.launch(built, x, weight, y)
    torch.cuda.synchronize()
    extension.check(x, weight, y)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        extension.launch(built, x, weight, y)
        extension.launch(built, y, weight, again)
    for replay in range(REPLAYS):
        x.copy_(torch.full_like(x, replay + 1) + x)
        y.zero_()
        again.zero_()
        graph.replay()
        torch.cuda.synchronize()
        extension.check(x, weight, y)
        extension.check(y, weight, again)
    launches = 1 + REPLAYS * NODES
    marked.ok(launches, launches * extension.EVENTS)


if __name__ == "__main__":
    main()
