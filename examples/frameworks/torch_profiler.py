"""torch.profiler beside iket: both see every launch, and the profiler sees none that it does not see alone.

    iket profile -- python3 torch_profiler.py

Prints the kernels that the profiler (CUPTI) saw, each with its count: the same with and without iket. Ends
with 1 if the result is wrong, with 77 if something is missing.
"""

import collections
import json
import os
import tempfile

import marked
import torch_extension as extension

ROUNDS = 5


def kernels(profiler):
    """Counter of kernel names, by the trace that PyTorch writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    return collections.Counter(event["name"] for event in events if event.get("cat") == "kernel")


def main():
    built = extension.library()
    import torch
    from torch.profiler import ProfilerActivity, profile

    x, weight, y = extension.arrays()

    def work():
        extension.launch(built, x, weight, y)
        z = (y @ y.t()).relu().sum(0)
        return torch.sort(z).values.cumsum(0)

    work()  # libraries choose and load their kernels here, not under the profiler
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(ROUNDS):
            work()
        torch.cuda.synchronize()
    extension.check(x, weight, y)

    seen = kernels(profiler)
    if not seen:
        marked.cannot_run("torch.profiler saw no kernel: CUPTI does not work here")
    for name in sorted(seen):
        print(f"{seen[name]:3} {name}")
    if seen["RmsNorm"] != ROUNDS:
        marked.wrong(f"the profiler saw {seen['RmsNorm']} launches of RmsNorm, not {ROUNDS}")
    marked.ok(1 + ROUNDS, (1 + ROUNDS) * extension.EVENTS)


if __name__ == "__main__":
    main()
