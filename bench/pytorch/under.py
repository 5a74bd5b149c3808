"""under.py MODE FILE PROGRAM STEPS: runs one program under one allocator (default, expandable, cistern),
and prints what it took as one line of JSON. compare.py runs it.

FILE "allocations" is no file: PROGRAM is how many threads, and STEPS for how many seconds they
allocate."""

import importlib.util
import json
import os
import sys
import threading
import time

MIB = 1 << 20


def enable(mode):
    if mode == "expandable":
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    if mode == "cistern":
        import cistern.torch

        cistern.torch.enable("native")


def used(torch):
    free, total = torch.cuda.mem_get_info()
    return total - free


def train(torch, program, steps):
    """Losses, and the GPU's time from the end of one step to the end of the next."""
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.cuda.init()
    torch.cuda.synchronize()
    before = peak = used(torch)
    losses, ends = [], []
    for loss in program(torch, steps):
        losses.append(loss)
        ends.append(torch.cuda.Event(enable_timing=True))
        ends[-1].record()
        peak = max(peak, used(torch))
    torch.cuda.synchronize()
    times = [a.elapsed_time(b) for a, b in zip(ends[1:], ends[2:])]
    stats = torch.cuda.memory_stats()
    return {
        "losses": losses,
        "ms": times,
        "peak_mib": (peak - before) / MIB,
        "asked_mib": stats["requested_bytes.all.peak"] / MIB,
    }


# In TorchScript, so that no thread waits for Python's lock: what is left is the allocator, and the
# launch where there is one. A tensor lives while 63 others come.
CHURN = """
def churn(rounds: int, add: bool):
    kept = [torch.empty(1, device="cuda") for i in range(64)]
    for i in range(rounds):
        for k in range(64):
            size = 128 + 64 * ((i * 7 + k * 13) % 61)
            kept[k] = torch.empty(size, device="cuda")
            if add:
                kept[k] = kept[k] + 1
    return kept[0]
"""


def allocations(torch, threads, seconds, add):
    """How many a second all threads together make, each on a stream of its own."""
    churn = torch.jit.CompilationUnit(CHURN).churn
    made = [0] * threads
    begin, end = threading.Barrier(threads + 1), threading.Event()

    def work(number):
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            churn(4, add)
            begin.wait()
            while not end.is_set():
                churn(50, add)
                made[number] += 64 * (51 + (50 if add else 0))
                if add:
                    torch.cuda.current_stream().synchronize()

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    begin.wait()
    since = time.perf_counter()
    time.sleep(seconds)
    end.set()
    for worker in workers:
        worker.join()
    return sum(made) / (time.perf_counter() - since)


def main(mode, file, program, steps):
    enable(mode)
    import torch

    if file == "allocations":
        threads, seconds = int(program), float(steps)
        torch.cuda.init()
        result = {
            "alone": allocations(torch, threads, seconds, False),
            "with a kernel each": allocations(torch, threads, seconds, True),
        }
    else:
        spec = importlib.util.spec_from_file_location("programs", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        result = train(torch, getattr(module, program), int(steps))
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
