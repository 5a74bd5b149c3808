#!/usr/bin/env python3
"""Sleep and wake under PyTorch. Needs a GPU.

  sleep.py rounds [--rounds N]
      Rounds of sleep and wake. Graphs that were captured before replay between them, by hand and by
      torch.compile's mode reduce-overhead. Each result is compared with the one from before the first
      sleep, to the last bit. Other tensors take the memory meanwhile.
  sleep.py rates [--gib N] [--rounds N] [--with cistern | torch_memory_saver]
      The times of pause and resume. Half of the bytes are in tensors under 1 MiB, and every second tensor
      is freed. torch_memory_saver needs its package; it is run in its mode "preload".
"""

import argparse
import json
import os
import random
import resource
import statistics
import sys
import time

MIB, GIB = 1 << 20, 1 << 30
REGIONS = ("weights", "cache", "graph")
INPUTS = 8


def free_bytes(torch):
    torch.cuda.synchronize()
    return torch.cuda.mem_get_info()[0]


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // MIB


# ---- Rounds ----------------------------------------------------------------------------------------


def network(torch, layers, width):
    from torch import nn

    block = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    return nn.Sequential(*(nn.TransformerEncoder(block, layers), nn.Linear(width, width))).cuda().eval()


class Programs:
    """What runs between the rounds, on weights of a region."""

    def __init__(self, torch, region, pool):
        self.torch = torch
        with region("weights"):
            self.plain, self.compiled_one = network(torch, 6, 512), network(torch, 4, 256)
        with region("cache"):
            self.cache = torch.zeros(64 * MIB // 4, device="cuda")
            self.trained = torch.nn.Linear(256, 256).cuda()
        self.kept = self.cache.clone()  # the same, outside of any region
        self.compiled = torch.compile(self.compiled_one, mode="reduce-overhead")
        generator = torch.Generator("cuda").manual_seed(1)
        self.inputs = [torch.randn(4, 64, 512, device="cuda", generator=generator) for _ in range(INPUTS)]
        self.capture(pool)

    def capture(self, pool):
        torch = self.torch
        self.given = torch.zeros_like(self.inputs[0])
        side = torch.cuda.Stream()
        with torch.cuda.stream(side), torch.no_grad():
            self.plain(self.given)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.graph, pool=pool("graph").id):
            self.result = self.plain(self.given)
            self.sums = self.result.abs().sum(dim=(1, 2))

    def replay(self, number):
        self.given.copy_(self.inputs[number])
        self.graph.replay()
        return self.result.clone(), self.sums.clone()

    def run_compiled(self, number):
        with self.torch.no_grad():
            self.torch.compiler.cudagraph_mark_step_begin()
            return (self.compiled(self.inputs[number][:, :, :256].contiguous()).clone(),)

    def add_to_cache(self, number):
        for of in (self.cache, self.kept):
            of.mul_(0.5).add_(number + 1)

    def wrong(self, expected, number):
        """How many results are not what they were before the first sleep."""
        torch = self.torch
        got = self.replay(number) + self.run_compiled(number)
        self.add_to_cache(number)
        got += (self.cache,)
        return sum(not torch.equal(a, b) for a, b in zip(got, expected[number] + (self.kept,)))


def others(torch, chance, most):
    """Other programs' tensors, which take the memory that is free now."""
    made = []
    for _ in range(chance.randrange(1, 6)):
        size = chance.randrange(MIB, most // 6)
        made.append(torch.full((size // 4,), float("nan"), device="cuda"))
    return made


def kept(torch, cistern_torch):
    """What the device has less free while all regions sleep and no cache is full. A new process has the rest."""
    cistern_torch.sleep()
    torch.cuda.empty_cache()
    free, total = free_bytes(torch), torch.cuda.mem_get_info()[1]
    others_have = torch.cuda.memory_reserved()
    cistern_torch.wake()
    return total - free - others_have


def rounds(arguments):
    import cistern.torch

    cistern.torch.enable("native")
    import torch

    chance, wrong = random.Random(arguments.seed), 0
    programs = Programs(torch, cistern.torch.region, cistern.torch.pool)
    for _ in range(3):
        programs.run_compiled(0)
    expected = [programs.replay(i) + programs.run_compiled(i) for i in range(INPUTS)]
    with cistern.torch.region("cache"):
        extra = torch.full((4 * MIB,), 3, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    free_before, times, least = free_bytes(torch), {"sleep": [], "wake": []}, 1 << 60
    for round_number in range(arguments.rounds):
        names = chance.sample(REGIONS, chance.randrange(1, 4))
        begun = time.perf_counter()
        slept = cistern.torch.sleep(*names)
        times["sleep"].append(time.perf_counter() - begun)
        least = min(least, slept.released)
        taken = others(torch, chance, slept.released + 64 * MIB)
        if "cache" in names and round_number % 10 == 0:
            extra = None
        if "weights" not in names:
            programs.run_compiled(chance.randrange(INPUTS))
        del taken
        begun = time.perf_counter()
        cistern.torch.wake(keep_host_memory=round_number % 50 != 49)
        times["wake"].append(time.perf_counter() - begun)
        wrong += programs.wrong(expected, chance.randrange(INPUTS))
        if extra is None:
            with cistern.torch.region("cache"):
                extra = torch.full((4 * MIB,), 3, dtype=torch.int32, device="cuda")
        elif not bool((extra == 3).all()):
            wrong += 1
        if round_number + 1 in (10, 100, arguments.rounds):
            torch.cuda.empty_cache()
            lost = (free_before - free_bytes(torch)) // MIB
            print(f"after {round_number + 1} rounds: {wrong} wrong results; the driver has {lost} MiB less "
                  f"free than before the first; resident {resident_mib()} MiB", flush=True)
    print(f"the driver keeps {kept(torch, cistern.torch) // MIB} MiB for the context, modules and graphs")
    print(f"median sleep {1e3 * statistics.median(times['sleep']):.2f} ms, wake "
          f"{1e3 * statistics.median(times['wake']):.2f} ms; the least given back {least // MIB} MiB")
    return 1 if wrong else 0


# ---- Rates -----------------------------------------------------------------------------------------


def saver(name):
    if name == "cistern":
        import cistern.torch

        cistern.torch.enable("native")
        from cistern.torch_memory_saver import torch_memory_saver
    else:
        from torch_memory_saver import torch_memory_saver
    return torch_memory_saver


def fill(torch, total):
    """Tensors, each full of its number. Every second one is gone."""
    chance, made, small, large = random.Random(1), [], 0, 0
    while small + large < total:
        if small <= large:
            size = chance.randrange(4096, MIB, 512)
            small += size
        else:
            size = chance.randrange(MIB, 64 * MIB, 512)
            large += size
        made.append(torch.full((size // 4,), len(made), dtype=torch.int32, device="cuda"))
    numbers = range(1, len(made), 2)
    return dict(zip(numbers, made[1::2]))


def plain_copy(torch):
    device = torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")
    host = torch.empty(2 * GIB, dtype=torch.uint8, pin_memory=True)
    rates = []
    for to, of in ((host, device), (device, host)):
        took = []
        for _ in range(5):
            torch.cuda.synchronize()
            begun = time.perf_counter()
            to.copy_(of, non_blocking=True)
            torch.cuda.synchronize()
            took.append(time.perf_counter() - begun)
        rates.append(2 * GIB / statistics.median(took) / 1e9)
    return rates


def rates(arguments):
    if arguments.peer == "torch_memory_saver" and "LD_PRELOAD" not in os.environ:
        import torch_memory_saver

        with torch_memory_saver.configure_subprocess():
            os.execv(sys.executable, [sys.executable] + sys.argv)
    memory_saver = saver(arguments.peer)
    import torch

    out, back = plain_copy(torch)
    torch.cuda.empty_cache()
    before = free_bytes(torch)
    with memory_saver.region("all", enable_cpu_backup=True):
        tensors = fill(torch, arguments.gib * GIB)
    living = sum(t.numel() * 4 for t in tensors.values())
    reserved = before - free_bytes(torch)
    took = {"pause": [], "resume": []}
    for _ in range(arguments.rounds + 1):
        for verb in ("pause", "resume"):
            torch.cuda.synchronize()
            begun = time.perf_counter()
            getattr(memory_saver, verb)("all")
            torch.cuda.synchronize()
            took[verb].append(time.perf_counter() - begun)
            if verb == "pause":
                rose = free_bytes(torch) - (before - reserved)
                time.sleep(0.2)  # the driver clears what was given back
    wrong = sum(not bool((t == number).all()) for number, t in tensors.items())
    warm = {verb: statistics.median(times[1:]) for verb, times in took.items()}
    print(json.dumps({
        "with": arguments.peer, "tensors": len(tensors), "living_mib": living // MIB,
        "taken_mib": reserved // MIB, "given_back_mib": rose // MIB,
        "plain_gb_s": [round(out, 1), round(back, 1)],
        "cold_pause_ms": round(1e3 * took["pause"][0], 1), "first_resume_ms": round(1e3 * took["resume"][0], 1),
        "pause_ms": round(1e3 * warm["pause"], 1), "resume_ms": round(1e3 * warm["resume"], 1),
        "pause_gb_s": round(living / warm["pause"] / 1e9, 1),
        "resume_gb_s": round(living / warm["resume"] / 1e9, 1),
        "resident_mib": resident_mib(), "wrong": wrong}))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("rounds", "rates"))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gib", type=int, default=8)
    parser.add_argument("--with", dest="peer", choices=("cistern", "torch_memory_saver"), default="cistern")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1000 if arguments.what == "rounds" else 5)
    return rounds(arguments) if arguments.what == "rounds" else rates(arguments)


if __name__ == "__main__":
    sys.exit(main())
