#!/usr/bin/env python3
"""Training on two GPUs over NCCL whose memory sleeps between the steps. Needs two GPUs.

  sleep_sharded.py [--rounds N]

DDP trains; its weights, gradients and optimiser's states are in a region. After each step the region
sleeps, other tensors take the memory, and it wakes. The communicator stays. The losses are compared with
those of a run that never sleeps, to the last bit. Then graphs with NCCL's calls are captured, and replayed after
each wake, on buffers of several sizes. With NCCL_GRAPH_REGISTER=1 their regions refuse to sleep.
"""

import argparse
import json
import os
import subprocess
import sys

MIB = 1 << 20


def trained(torch, cistern_torch, rank, rounds, sleeps):
    torch.manual_seed(0)
    with cistern_torch.region("model"):
        layers = [torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(16)]
        model = torch.nn.Sequential(*layers).cuda()
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank],
                                                          gradient_as_bucket_view=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, released = [], 0
    for step in range(rounds):
        generator = torch.Generator("cuda").manual_seed(2 * step + rank)
        given = torch.randn(64, 1024, device="cuda", generator=generator)
        with cistern_torch.region("model"):  # the gradients and states of the first step too
            loss = (model(given) - given).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        losses.append(float(loss.detach()))
        del loss
        if sleeps:
            slept = cistern_torch.sleep("model")
            released = slept.released
            other = torch.full((slept.released // 8,), float("nan"), device="cuda")
            del other
            cistern_torch.wake("model")
    return losses, released


def alone(torch, cistern_torch):
    """Whether a graph without NCCL sleeps and replays."""
    given = torch.ones(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=cistern_torch.pool("alone").id):
        doubled = given * 2
    cistern_torch.sleep("alone")
    cistern_torch.wake("alone")
    graph.replay()
    return bool((doubled == 2).all())


class Graph:
    """Calls NCCL on buffers of a region and of the graph's own pool, which is a region's too."""

    def __init__(self, torch, cistern_torch, rank, count):
        self.torch, self.rank, self.count = torch, rank, count
        with cistern_torch.region("shared"):
            self.buffer, self.sent, self.got, self.whole = (
                torch.zeros(count, device="cuda") for _ in range(4))
        torch.distributed.all_reduce(self.buffer)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=cistern_torch.pool("graph").id):
            self.calls()

    def calls(self):
        distributed = self.torch.distributed
        distributed.all_reduce(self.buffer)
        self.made = self.buffer * 2
        distributed.all_reduce(self.made)
        self.part = self.made[:self.count // 2] + self.rank
        distributed.all_gather_into_tensor(self.whole, self.part)
        distributed.reduce_scatter_tensor(self.part, self.whole)
        self.sent.copy_(self.whole)
        distributed.broadcast(self.sent, 0)
        other = 1 - self.rank
        for work in distributed.batch_isend_irecv([
                distributed.P2POp(distributed.isend, self.sent, other),
                distributed.P2POp(distributed.irecv, self.got, other)]):
            work.wait()

    def wrong(self, step):
        """Replays it. How many numbers are not what the calls give."""
        self.buffer.fill_(self.rank + step)
        self.graph.replay()
        self.torch.cuda.synchronize()
        made = 4 * (1 + 2 * step)
        expected = {"buffer": [1 + 2 * step], "made": [made], "part": [2 * (made + self.rank)],
                    **dict.fromkeys(("whole", "sent", "got"), [made, made + 1])}
        return {name: wrong for name, values in expected.items() if (wrong := sum(
            int((part != value).sum())
            for part, value in zip(getattr(self, name).chunk(len(values)), values)))}


def captured(torch, cistern_torch, rank, rounds, count):
    """Rounds of sleep with such a graph: which results were wrong how often, and why a sleep was refused."""
    graph, wrong = Graph(torch, cistern_torch, rank, count), {}
    for step in range(rounds):
        for name in graph.wrong(step):
            wrong[name] = wrong.get(name, 0) + 1
        try:
            cistern_torch.sleep("shared", "graph")
        except RuntimeError as error:
            return {"floats": count, "wrong": wrong, "refused": str(error)}
        other = torch.full((3 * count,), float("nan"), device="cuda")
        del other
        cistern_torch.wake()
    return {"floats": count, "wrong": wrong, "refused": ""}


def say(told):
    """In one piece: the other rank writes too."""
    os.write(1, (json.dumps(told) + "\n").encode())


def kept(torch):
    """The driver's memory beside tensors: the context, modules, and what NCCL has."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return total - free - torch.cuda.memory_reserved()


def rank_main(rank, rounds):
    import cistern.torch

    cistern.torch.enable("native")
    import torch

    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    expected, _ = trained(torch, cistern.torch, rank, rounds, False)
    losses, released = trained(torch, cistern.torch, rank, rounds, True)
    told = {"rank": rank, "same": losses == expected, "released_mib": released // MIB,
            "alone": alone(torch, cistern.torch), "kept_mib": kept(torch) // MIB}
    say(told)
    for count in (64 << 10, 1 << 20, 8 << 20):
        told = {"rank": rank, **captured(torch, cistern.torch, rank, rounds, count)}
        say(told)
    os._exit(0)  # a communicator whose graph lives ends with the process


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--port", type=int, default=29710)
    parser.add_argument("--timeout", type=int, default=180, metavar="S")
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        return rank_main(int(os.environ["RANK"]), arguments.rounds)
    environment = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": str(arguments.port), "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    ranks = [subprocess.Popen([sys.executable] + sys.argv, env={**environment, "RANK": str(rank)})
             for rank in range(2)]
    try:
        return max(abs(rank.wait(timeout=arguments.timeout)) for rank in ranks)
    except subprocess.TimeoutExpired:
        print(f"no end after {arguments.timeout} s")
        return 1
    finally:
        for rank in ranks:
            rank.kill()


if __name__ == "__main__":
    sys.exit(main())
