"""PyTorch on several streams, and a CUDA graph that is replayed. Integers, so that results are exact."""

import torch

x = torch.arange(1 << 16, device="cuda", dtype=torch.int64).reshape(256, 256)
streams = [torch.cuda.Stream() for _ in range(3)]
torch.cuda.synchronize()
parts = []
for k, stream in enumerate(streams):
    with torch.cuda.stream(stream):
        parts.append(((x * (k + 1)) % 1009).cumsum(0).sum(1))
torch.cuda.synchronize()
print([int(part.sum()) for part in parts])

ones = torch.ones(64, 64, device="cuda")
print(float((ones @ ones).sum()))

source = torch.zeros(1024, device="cuda", dtype=torch.int32)
warm_up = torch.cuda.Stream()
with torch.cuda.stream(warm_up):
    for _ in range(2):
        (source * 3 + 1).sort()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = (source * 3 + 1).sort().values
for k in range(5):
    source.fill_(k)
    graph.replay()
torch.cuda.synchronize()
print(int(result.sum()))
