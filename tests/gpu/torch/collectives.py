"""collectives.py GROUP MODE: two processes, a GPU each, whose NCCL registers memory of the allocator (default,
expandable or cistern) while pages of it move. Prints a line of JSON for each process: a list of cases, each its name,
its outcome ("right", "wrong" or an error) and how many pages moved meanwhile.

The groups: `pool` (register_mem_pool), `window` (the same with symm=True), `memory` and `memory-window` (both on a pool
of ncclMemAlloc), `symmetric-cuda` and `symmetric-nccl` (torch.distributed._symmetric_memory), `graph…` (replays of a
captured graph), and `capture…` (memory that a pool with windows takes in a capture, and a pool that is registered
there)."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from datetime import timedelta

MIB = 1 << 20
SIZES = (1_000_003, 8 << 20, 24 << 20)  # floats
ROUNDS = 6
REPLAYS = 100
MODES = ("default", "expandable", "cistern")


def values(torch, rank, count, seed):
    """Whole numbers, whose sums are exact in any order."""
    return ((torch.arange(count, device="cuda") * (2 * rank + 3) + seed) % 1021).float()


class Churn:
    """Takes and frees memory of changing sizes on three streams, and writes to it: who still reads a page that has
    moved reads this."""

    def __init__(self, torch, most=1 << 30):
        self.torch, self.most, self.random, self.seed = torch, most, random.Random(7), 0
        self.streams = [torch.cuda.Stream() for _ in range(3)]
        self.kept, self.bytes = [], 0

    def round(self, takes=6):
        for _ in range(takes):
            size = self.random.choice((3, 9, 20, 64, 100, 170)) * MIB + self.random.randrange(MIB // 512) * 512
            while self.kept and self.bytes + size > self.most:
                gone = self.kept.pop(self.random.randrange(len(self.kept)))
                self.bytes -= gone.numel()
            self.seed += 1
            with self.torch.cuda.stream(self.streams[self.seed % 3]):
                self.kept.append(self.torch.empty(size, dtype=self.torch.uint8, device="cuda").fill_(0xF5))
            self.bytes += size

    def end(self):
        self.kept, self.bytes = [], 0


class Rank:
    def __init__(self, torch, rank):
        self.torch, self.dist, self.rank = torch, torch.distributed, rank
        self.device = torch.device("cuda", rank)
        self.group = self.dist.group.WORLD
        self.backend = self.group._get_backend(self.device)
        self.store = self.dist.distributed_c10d._get_default_store()
        self.churn = Churn(torch)
        self.cases = []

    def moved(self):
        return self.torch.cuda.memory_stats().get("cistern.pages.recycled", 0)

    def case(self, name, check):
        """Runs it; False if it failed on either rank, after which NCCL cannot be used."""
        before, outcome = self.moved(), None
        try:
            wrong = check()
            outcome = "right" if not wrong else "wrong: " + ", ".join(wrong)
        except Exception as failure:
            while failure.__context__ is not None:  # the first
                failure = failure.__context__
            lines = [line for line in str(failure).splitlines() if line.strip()]
            told = " | ".join(lines[:1] + lines[-2:] if len(lines) > 3 else lines)
            outcome = f"{type(failure).__name__}: {told[:400]}"
        self.cases.append({"case": name, "outcome": outcome, "moved": self.moved() - before})
        self.say(False)
        self.store.set(f"{name}/{self.rank}", "ran" if outcome.startswith(("right", "wrong")) else "failed")
        try:
            self.store.wait([f"{name}/{1 - self.rank}"], timedelta(seconds=12))
            other = self.store.get(f"{name}/{1 - self.rank}").decode()
        except Exception:
            other = "gone"
        return other == "ran" and outcome.startswith(("right", "wrong"))

    def say(self, done=True):
        os.write(1, (json.dumps({"rank": self.rank, "cases": self.cases, "done": done}) + "\n").encode())

    def pool(self, nccl):
        return self.torch.cuda.MemPool(self.backend.mem_allocator) if nccl else self.torch.cuda.MemPool()

    def buffers(self, pool, sizes=SIZES):
        """Three tensors for each size: all-reduce, all-gather, reduce-scatter."""
        with contextlib.nullcontext() if pool is None else self.torch.cuda.use_mem_pool(pool):
            return [[self.torch.empty(count, device="cuda") for count in (n, 2 * n, n)] for n in sizes]

    def bytes(self, count):
        return self.torch.empty(count, dtype=self.torch.uint8, device="cuda").fill_(0xF5)

    def calls(self, tensors):
        one, both, part = tensors
        self.dist.all_reduce(one)
        self.dist.all_gather_into_tensor(both, one + self.rank)
        self.dist.reduce_scatter_tensor(part, both)

    def expected(self, count, seed):
        whole = values(self.torch, 0, count, seed) + values(self.torch, 1, count, seed)
        both = self.torch.cat([whole, whole + 1])
        return [whole, both, 2 * both.chunk(2)[self.rank]]

    def differing(self, tensors, seed, wrong):
        for name, got, right in zip(("all_reduce", "all_gather", "reduce_scatter"), tensors,
                                    self.expected(len(tensors[0]), seed)):
            bad = int((got != right).sum())
            if bad:
                wrong[name] = wrong.get(name, 0) + bad

    def rounds(self, buffers, rounds=ROUNDS):
        """Collectives on them while pages move. Which differ, by how many numbers."""
        wrong = {}
        for seed in range(rounds):
            for tensors in buffers:
                tensors[0].copy_(values(self.torch, self.rank, len(tensors[0]), seed))
                self.churn.round(2)
                self.calls(tensors)
                self.churn.round(2)
                self.differing(tensors, seed, wrong)
        return [f"{name} {bad}" for name, bad in wrong.items()]

    def stir(self, pool):
        """Takes and frees memory of the pool too, on two streams: its own pages move."""
        other = self.torch.cuda.Stream()
        for index in range(12):
            with self.torch.cuda.use_mem_pool(pool):
                some = [self.bytes((17 + 13 * index + 31 * k) * MIB) for k in range(2)]
                with self.torch.cuda.stream(other):
                    some.append(self.bytes((40 + 5 * index) * MIB))
            del some
            self.churn.round(4)
        self.torch.cuda.synchronize()


def pools(rank, nccl, symm):
    torch, pool = rank.torch, rank.pool(nccl)
    if not rank.case("unregistered", lambda: rank.rounds(rank.buffers(pool), 2)):
        return
    buffers = rank.buffers(pool)

    def register():
        torch.cuda.synchronize()
        rank.backend.register_mem_pool(pool, symm=symm)

    if not rank.case("register", register) or not rank.case("registered", lambda: rank.rounds(buffers)):
        return

    def anew():
        buffers.clear()
        rank.stir(pool)
        buffers.extend(rank.buffers(pool, (SIZES[1] + 12345, SIZES[0], SIZES[2])))
        return rank.rounds(buffers)

    def more():
        buffers.extend(rank.buffers(pool, (30 << 20,)))
        return rank.rounds(buffers)

    def emptied():
        buffers.clear()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        rank.stir(pool)
        buffers.extend(rank.buffers(pool))
        return rank.rounds(buffers)

    def short():
        """A request takes what lies free in the pool, as there is no other memory."""
        buffers.clear()
        rank.churn.end()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(rank.device).total_memory
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 32 * MIB) / total)
        try:
            kept = [rank.bytes(100 * MIB) for _ in range(5)]
        except torch.OutOfMemoryError:
            kept = []
        torch.cuda.set_per_process_memory_fraction(1.0)
        buffers.extend(rank.buffers(pool))
        wrong = rank.rounds(buffers)
        del kept
        return wrong

    def deregister():
        torch.cuda.synchronize()
        rank.backend.deregister_mem_pool(pool)

    (rank.case("freed and taken anew", anew) and rank.case("more taken after it", more)
     and rank.case("cache emptied, taken anew", emptied) and rank.case("short of memory, taken anew", short)
     and rank.case("deregister", deregister)
     and rank.case("deregistered", lambda: rank.rounds(buffers, 2)))


def symmetric(rank, backend):
    import torch.distributed._symmetric_memory as symm_mem

    torch, name = rank.torch, rank.group.group_name
    made = []

    def choose():
        symm_mem.set_backend(backend)

    def make():
        made.extend(symm_mem.empty(count, dtype=torch.float32, device=rank.device)
                    for count in (4096, 1 << 20, 8 << 20))
        for tensor in made:
            symm_mem.rendezvous(tensor, rank.group)

    def over(reduce):
        wrong = 0
        for seed in range(ROUNDS):
            for tensor in made:
                tensor.copy_(values(torch, rank.rank, len(tensor), seed))
                rank.churn.round(2)
                torch.cuda.synchronize()
                rank.dist.barrier()
                got = reduce(tensor)
                rank.churn.round(2)
                right = sum(values(torch, each, len(tensor), seed) for each in (0, 1))
                wrong += int((got != right).sum())
                torch.cuda.synchronize()
                rank.dist.barrier()
        return [str(wrong)] if wrong else []

    def in_place(tensor):
        rank.dist.all_reduce(tensor)
        return tensor

    def anew():
        made.clear()
        for _ in range(8):
            rank.churn.round()
        make()
        return over(in_place)

    def one_shot(tensor):
        return torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", name)

    def two_shot(tensor):
        return torch.ops.symm_mem.two_shot_all_reduce_(tensor, "sum", name)

    if not rank.case("backend", choose):
        return
    if rank.case("empty and rendezvous", make) and rank.case("all_reduce", lambda: over(in_place)):
        if backend == "NCCL":
            rank.case("taken anew, all_reduce", anew) and rank.case("one shot", lambda: over(one_shot))
        else:
            (rank.case("one shot", lambda: over(one_shot)) and rank.case("two shots", lambda: over(two_shot))
             and rank.case("taken anew, all_reduce", anew)
             and rank.case("taken anew, one shot", lambda: over(one_shot)))


def graphs(rank, nccl, symm, register):
    """Replays of captured collectives while pages move."""
    torch = rank.torch
    pool = rank.pool(nccl) if register else None
    buffers = rank.buffers(pool, SIZES[:2])
    if register and not rank.case("register", lambda: rank.backend.register_mem_pool(pool, symm=symm)):
        return
    graph, kept = torch.cuda.CUDAGraph(), []

    def capture():
        nonlocal graph
        graph = torch.cuda.CUDAGraph()
        for tensors in buffers:
            tensors[0].fill_(1)
            rank.calls(tensors)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for tensors in buffers:
                rank.calls(tensors)
                kept.append(tensors[2] * 2)  # of the graph's own pool
                rank.dist.all_reduce(kept[-1])

    def replays(number):
        wrong = {}
        for seed in range(number):
            for tensors in buffers:
                tensors[0].copy_(values(torch, rank.rank, len(tensors[0]), seed))
            rank.churn.round(3)
            graph.replay()
            rank.churn.round(3)
            for tensors, both in zip(buffers, kept):
                rank.differing(tensors, seed, wrong)
                whole = rank.expected(len(tensors[0]), seed)[0]
                bad = int((both != 8 * whole + 4).sum())
                if bad:
                    wrong["graph's own"] = wrong.get("graph's own", 0) + bad
        return [f"{name} {bad}" for name, bad in wrong.items()]

    def emptied():
        rank.churn.end()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        if pool is not None:
            rank.stir(pool)
        return replays(10)

    def anew():
        """The buffers, which NCCL may have registered for the capture, are freed; others come to their places."""
        nonlocal buffers
        torch.cuda.synchronize()
        graph.reset()
        kept.clear()
        buffers = None
        rank.churn.end()
        torch.cuda.empty_cache()
        for _ in range(8):
            rank.churn.round()
        if pool is not None:
            rank.stir(pool)
        buffers = rank.buffers(pool, SIZES[:2])
        capture()
        return replays(10)

    (rank.case("capture", capture) and rank.case(f"{REPLAYS} replays", lambda: replays(REPLAYS))
     and rank.case("cache emptied, replays", emptied) and rank.case("captured anew", anew)
     and rank.case("captured a third time", anew))
    torch.cuda.synchronize()


def in_capture(rank, nccl, taken):
    """Memory that a pool with windows takes in a capture (`taken`), or a pool that is registered there."""
    torch, pool = rank.torch, rank.pool(nccl)
    buffers = rank.buffers(pool, SIZES[:1])

    def register():
        rank.backend.register_mem_pool(pool, symm=True)
        return rank.rounds(buffers, 1)

    def capture():
        graph, kept = torch.cuda.CUDAGraph(), []
        count = 5 << 20
        given = values(torch, rank.rank, count, 0)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            if not taken:
                rank.backend.register_mem_pool(pool, symm=True)
            with torch.cuda.use_mem_pool(pool):
                kept.append(torch.empty(count, device="cuda"))
            kept[0].copy_(given)
            rank.dist.all_reduce(kept[0])
        wrong = 0
        right = rank.expected(count, 0)[0]
        for seed in range(20):
            rank.churn.round(3)
            graph.replay()
            rank.churn.round(3)
            wrong += int((kept[0] != right).sum())
        return [str(wrong)] if wrong else []

    if not taken or rank.case("register", register):
        rank.case("taken in a capture" if taken else "registered in a capture", capture)


GROUPS = {
    "pool": lambda rank: pools(rank, False, False),
    "window": lambda rank: pools(rank, False, True),
    "memory": lambda rank: pools(rank, True, False),
    "memory-window": lambda rank: pools(rank, True, True),
    "symmetric-cuda": lambda rank: symmetric(rank, "CUDA"),
    "symmetric-nccl": lambda rank: symmetric(rank, "NCCL"),
    "graph": lambda rank: graphs(rank, False, False, False),
    "graph-pool": lambda rank: graphs(rank, False, False, True),
    "graph-window": lambda rank: graphs(rank, False, True, True),
    "graph-memory-window": lambda rank: graphs(rank, True, True, True),
    "capture": lambda rank: in_capture(rank, False, True),
    "capture-memory": lambda rank: in_capture(rank, True, True),
    "capture-register": lambda rank: in_capture(rank, False, False),
}


def main():
    """One of the two processes: argv has the mode, which is in force, and the group."""
    import torch

    number = int(os.environ["RANK"])
    torch.cuda.set_device(number)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", number),
                                         timeout=timedelta(seconds=15))
    torch.distributed.all_reduce(torch.ones(1, device="cuda"))
    rank = Rank(torch, number)
    GROUPS[sys.argv[2]](rank)
    rank.say()
    os._exit(0)  # a communicator whose graph lives ends with the process


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(group, mode, seconds=100):
    """The cases of both processes, and what they said on the standard error."""
    environment = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    if mode == "expandable":
        environment.update(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
                           PYTORCH_ALLOC_CONF="expandable_segments:True")
    ranks = [subprocess.Popen([sys.executable, __file__, mode, group], env={**environment, "RANK": str(rank)},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in (0, 1)]
    said = []
    try:
        for rank in ranks:
            try:
                said.append(rank.communicate(timeout=seconds))
            except subprocess.TimeoutExpired:
                rank.kill()
                said.append(rank.communicate())
    finally:
        for rank in ranks:
            rank.kill()
    cases = [(json.loads(out.splitlines()[-1]) if out.strip() else {"cases": [], "done": False}) for out, _ in said]
    return cases, [err for _, err in said]


if __name__ == "__main__":
    if "RANK" in os.environ:
        if sys.argv[1] == "cistern":
            import cistern.torch

            cistern.torch.enable("native")
        main()
    else:
        for told in run(*sys.argv[1:3])[0]:
            print(json.dumps(told))
