#!/usr/bin/env python3
"""What a history of memory costs, under PyTorch's own allocator and under Cistern, side by side.

    python bench/pytorch/history.py [--runs N] [--pairs N] [--bytes N] [--blocks N] [--depth N]

It prints one table. A pair is an allocation and its free, made by C++ below --depth frames of Python: two
events. "over off" is what recording adds to an event. PyTorch's history is
torch.cuda.memory._record_memory_history, which works on both allocators; Cistern's own is
Allocator.record_history. The snapshots have --blocks blocks and no events; "a stop" is the longest time that
a pair of another thread took meanwhile, beside the longest without a snapshot. Each allocator has a process
of its own for each run. A time of pairs is that of the quickest of 100 parts, as other programs only ever add
time. The figures are the medians of the runs.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
OFF, PLAIN, STACKS = "off", "PyTorch's, no stacks", "PyTorch's, Python stacks"
OWN, OWN_STACKS, OWN_FILE = "Cistern's, no stacks", "Cistern's, Python stacks", "Cistern's, stacks, to a file"
ENTRIES = 100_000


def compiled(folder):
    """The timed calls, as a library that is compiled against this PyTorch."""
    from cistern.torch import _build

    command, made = _build.command_line(), folder / "history_calls.so"
    options = [each for each in command[1:] if not each.startswith("-l")]
    libraries = [each for each in command[1:] if each.startswith("-l")]
    # PyTorch's own packages may lack what nvcc brings along (crt/host_config.h).
    options += [f"-I{folder}" for folder in _build._cuda_folders(None) if folder.is_dir()]
    subprocess.run([command[0], *options, "-fvisibility=default", str(HERE / "history_calls.cpp"), *libraries, "-o", str(made)], check=True)
    return str(made)


def load(path):
    calls = ctypes.CDLL(path)
    for name in ("pairs", "snapshot", "own_snapshot", "watched"):
        getattr(calls, f"history_{name}").restype = ctypes.c_double
    calls.history_pairs.argtypes = calls.history_hold.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    calls.history_watch.argtypes = (ctypes.c_size_t,)
    return calls


def below(depth, call):
    return call() if depth <= 0 else below(depth - 1, call)


# ---- One allocator, in a process of its own ----------------------------------------------------


def histories(allocator, torch, folder):
    """name -> how to begin it and how to end it."""
    memory = torch.cuda.memory

    def theirs(context):
        return lambda: memory._record_memory_history(max_entries=ENTRIES, context=context, stacks="python")

    def end_theirs():
        memory._record_memory_history(enabled=None)

    found = {OFF: (lambda: None, lambda: None), PLAIN: (theirs(None), end_theirs), STACKS: (theirs("alloc"), end_theirs)}
    if allocator == "Cistern":
        import cistern

        own = cistern.default(0)
        found[OWN] = (lambda: own.record_history(most_events=ENTRIES, stacks=False), own.stop_history)
        found[OWN_STACKS] = (lambda: own.record_history(most_events=ENTRIES), own.stop_history)
        found[OWN_FILE] = (lambda: own.record_history(file=folder / "history.trace"), own.stop_history)
    return found


def longest_stop(calls, wanted, work):
    calls.history_watch(wanted.bytes)
    work()
    return calls.history_watched()


def time_snapshot(calls, wanted, snapshot):
    """Of a snapshot: its time, the longest stop, and the longest in as much time without one."""
    took = snapshot()
    stop = longest_stop(calls, wanted, snapshot)
    idle = longest_stop(calls, wanted, lambda: time.sleep(took / 1e9))
    return {"ns": took / wanted.blocks, "stop": stop, "idle": idle}


def measure(allocator, wanted, library):
    if allocator == "Cistern":
        import cistern.torch

        cistern.torch.enable("native")
    import torch

    torch.cuda.init()
    calls = load(library)
    result = {"pairs": {}, "snapshots": {}, "release": torch.__version__, "device": torch.cuda.get_device_name(0)}
    with tempfile.TemporaryDirectory() as folder:
        for name, (begin, end) in histories(allocator, torch, Path(folder)).items():
            begin()
            below(wanted.depth, lambda: calls.history_pairs(wanted.pairs // 10, wanted.bytes))
            result["pairs"][name] = below(wanted.depth, lambda: calls.history_pairs(wanted.pairs, wanted.bytes))
            end()
    calls.history_hold(wanted.blocks, wanted.bytes)
    result["snapshots"]["torch.cuda's"] = time_snapshot(calls, wanted, calls.history_snapshot)
    if allocator == "Cistern":
        result["snapshots"]["Cistern's"] = time_snapshot(calls, wanted, calls.history_own_snapshot)
    calls.history_let_go()
    return result


# ---- All of them --------------------------------------------------------------------------------


def run(allocator, library):
    ran = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--measure", allocator, "--library", library],
                         stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{allocator}: the run has failed")
    return json.loads(ran.stdout.splitlines()[-1])


def median(results, *keys):
    values = []
    for result in results:
        for key in keys:
            result = result[key]
        values.append(result)
    return statistics.median(values)


def rows(allocator, results):
    off = median(results, "pairs", OFF)
    for name in results[0]["pairs"]:
        pair = median(results, "pairs", name)
        added = "" if name == OFF else f"{(pair - off) / 2:,.0f}"
        yield [allocator, f"history: {name}", f"{pair:,.0f}", added, "", ""]
    for name in results[0]["snapshots"]:
        ns, stop, idle = (median(results, "snapshots", name, key) for key in ("ns", "stop", "idle"))
        yield [allocator, f"snapshot: {name}", "", "", f"{ns:,.0f}", f"{stop / 1e6:.2f} ({idle / 1e6:.2f})"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--bytes", type=int, default=4096)
    parser.add_argument("--blocks", type=int, default=100_000)
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.measure:
        print(json.dumps(measure(wanted.measure, wanted, wanted.library)), flush=True)
        return
    allocators = ("PyTorch", "Cistern")
    results = {allocator: [] for allocator in allocators}
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        for _ in range(wanted.runs):
            for allocator in allocators:
                results[allocator].append(run(allocator, library))
    first = results["PyTorch"][0]
    print(f"PyTorch {first['release']} on {first['device']}, {os.cpu_count()} processors, blocks of {wanted.bytes:,} "
          f"bytes, {wanted.depth} frames, {wanted.blocks:,} blocks in a snapshot, medians of {wanted.runs} runs\n")
    print("| allocator | | ns a pair | over off, ns an event | snapshot, ns a block | a stop, ms (without one) |")
    print("|---|---|---|---|---|---|")
    for allocator in allocators:
        for row in rows(allocator, results[allocator]):
            print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
