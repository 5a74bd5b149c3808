#!/usr/bin/env python3
"""Training on two GPUs over NCCL whose memory sleeps between the steps. Needs two GPUs.

  sleep_sharded.py [--rounds N]

DDP trains; its weights, gradients and optimiser's states are in a region. After each step the region
sleeps, other tensors take the memory, and it wakes. The communicator stays. The losses are compared with
those of a run that never sleeps, to the last bit. Then a graph with an all-reduce of a buffer of the
region is captured, with NCCL's registration as by default, and the region is to sleep again.
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


def captured(torch, cistern_torch, rank, rounds):
    """Rounds with a graph that has an all-reduce; or why it may not sleep."""
    with cistern_torch.region("shared"):
        buffer = torch.zeros(8 * MIB, device="cuda")
    torch.distributed.all_reduce(buffer)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with cistern_torch.region("shared"):
        whole, sent, got = (torch.zeros(8 * MIB, device="cuda") for _ in range(3))
    with torch.cuda.graph(graph, pool=cistern_torch.pool("graph").id):
        torch.distributed.all_reduce(buffer)
        made = buffer * 2
        torch.distributed.all_reduce(made)
        part = made[:4 * MIB] + rank
        torch.distributed.all_gather_into_tensor(whole, part)
        torch.distributed.reduce_scatter_tensor(part, whole)
        sent.copy_(whole)
        torch.distributed.broadcast(sent, 0)
        for work in torch.distributed.batch_isend_irecv([
                torch.distributed.P2POp(torch.distributed.isend, sent, 1 - rank),
                torch.distributed.P2POp(torch.distributed.irecv, got, 1 - rank)]):
            work.wait()
    wrong = 0
    for step in range(rounds):
        buffer.fill_(rank + step)
        graph.replay()
        torch.cuda.synchronize()
        sum_of_both = 4 * (1 + 2 * step)
        wrong += int((buffer != 1 + 2 * step).sum()) + int((made != sum_of_both).sum())
        wrong += int((part != 2 * (sum_of_both + rank)).sum())
        wrong += sum(int((of != sum_of_both + half).sum())
                     for of in (sent, got) for half, of in enumerate(of.chunk(2)))
        try:
            cistern_torch.sleep("shared", "graph")
        except RuntimeError as error:
            return wrong, str(error)
        other = torch.full((24 * MIB,), float("nan"), device="cuda")
        del other
        cistern_torch.wake()
    return wrong, "slept"


def rank_main(rank, rounds):
    import cistern.torch

    cistern.torch.enable("native")
    import torch

    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    expected, _ = trained(torch, cistern.torch, rank, rounds, False)
    losses, released = trained(torch, cistern.torch, rank, rounds, True)
    told = {"rank": rank, "same": losses == expected, "released_mib": released // MIB}
    print(json.dumps(told), flush=True)
    told = {"rank": rank}
    told["wrong"], told["captured"] = captured(torch, cistern.torch, rank, rounds)
    print(json.dumps(told), flush=True)
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
