"""1 GiB of tensors under PyTorch, a captured graph, and 256 MiB that were freed. With `cistern`: on Cistern."""

import sys

if "cistern" in sys.argv:
    import cistern.torch
    cistern.torch.enable()
import torch

GIB = 1 << 30
kept = torch.arange(GIB // 8, device="cuda")
total = kept.sum().item()
weights = torch.randn(2048, 2048, device="cuda")
given = torch.randn(2048, 2048, device="cuda")
first = (given @ weights).sum().item()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    made = given @ weights
freed = torch.empty(GIB // 4, dtype=torch.uint8, device="cuda")
del freed
graph.replay()
reference = made.clone()
torch.cuda.synchronize()
print("ready", flush=True)
for _ in sys.stdin:
    made.zero_()
    graph.replay()
    right = kept.sum().item() == total and torch.equal(made, reference) and (given @ weights).sum().item() == first
    print("right" if right else "wrong", flush=True)
