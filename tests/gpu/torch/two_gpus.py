"""two_gpus.py [native]: two processes, a GPU each, that train one model by DistributedDataParallel over NCCL, sum what
each has in a captured graph, and pass tensors of one GPU to the process of the other. Prints one line of JSON: the
losses of both, and what else was computed. With `native`, both are on Cistern."""

import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

if "native" in sys.argv[1:]:
    import cistern.torch

    cistern.torch.enable("native")  # a child reads this file anew

STEPS = 50
BATCHES = [7, 64, 33, 128, 16]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU(),
            torch.nn.Linear(2048, 64))

    def forward(self, x):
        return self.layers(x)


def train(rank):
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(Model().cuda(), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(rank + 1)
    losses = []
    for step in range(STEPS):
        x = torch.randn(BATCHES[step % len(BATCHES)] * 8, 512, device="cuda")
        loss = torch.nn.functional.cross_entropy(model(x), torch.randint(0, 64, (len(x),), device="cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return losses


def sum_in_graph(rank):
    """What both have, added up by NCCL in a graph that is launched again and again."""
    with torch.cuda.stream(torch.cuda.Stream()):
        mine = torch.full((3_000_000,), float(rank + 1), device="cuda")
        dist.all_reduce(mine.clone())  # NCCL connects before a capture
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            both = mine * 2
            dist.all_reduce(both)
            total = both.double().sum()
    sums = []
    for _ in range(20):
        graph.replay()
        sums.append(float(total))
    return sorted(set(sums))


def pass_on(rank, queue, answers):
    """The first process makes tensors, the second adds to them, on its own GPU's stream."""
    if rank == 0:
        tensors = [torch.full((size,), 1.0, device="cuda") for size in (10, 100_000, 20_000_000)]
        torch.cuda.synchronize()
        queue.put(tensors)
        read = answers.get(timeout=100)
        return [read, [float(tensor.double().sum()) for tensor in tensors]]
    tensors = queue.get(timeout=100)
    read = [float(tensor.to("cuda:1").double().sum()) for tensor in tensors]
    for tensor in tensors:
        tensor += 1
    torch.cuda.synchronize(0)
    del tensor, tensors
    answers.put(read)
    return read


def work(rank, queue, answers, results):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    done = {"losses": train(rank)}
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") != "1":  # without a cache PyTorch has neither
        done["sums"] = sum_in_graph(rank)
        done["passed"] = pass_on(rank, queue, answers)
    results.put((rank, done))
    dist.barrier()
    dist.destroy_process_group()


def main():
    if torch.cuda.device_count() < 2:
        print("RESULT none: it takes two GPUs")
        return
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    context = mp.get_context("spawn")
    queue, answers, results = context.Queue(), context.Queue(), context.Queue()
    workers = [context.Process(target=work, args=(rank, queue, answers, results)) for rank in (0, 1)]
    for worker in workers:
        worker.start()
    done = dict(results.get(timeout=200) for _ in workers)
    for worker in workers:
        worker.join()
    assert all(worker.exitcode == 0 for worker in workers), [worker.exitcode for worker in workers]
    print("RESULT", json.dumps([done[0], done[1]]))


if __name__ == "__main__":
    main()
