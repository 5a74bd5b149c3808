#!/usr/bin/env python3
"""Training on two GPUs under PyTorch's own allocator, its expandable segments and Cistern; needs both.

  sharded.py [CASE...]    fsdp2 fsdp1 ddp tensor pipeline offload; all of them if none is named

The case offload trains on one GPU, in one process, a fifth of the layers: its optimiser runs on the host.

Each case runs --runs times under each allocator in turn. Memory is the driver's: the most that is used
at the end of a step, less what was before the model, and the most of all runs and both GPUs. Time is a
step's by the host's clock, from the third step on: each step's median of all runs, then their mean. The
next column says how many runs have the losses, and the checksums of all gradients and parameters, that
PyTorch's first run has, to the last bit. The last has what a step asks of the driver, in the first three
steps and in the last three, the mean of all runs and GPUs: the pages that Cistern makes, moves, unmaps and
gives back, which take a call or a few each, or the segments that PyTorch takes and gives back.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODES = ("default", "expandable", "cistern")
CASES = ("fsdp2", "fsdp1", "ddp", "tensor", "pipeline", "offload")
ALONE = ("offload",)
CALLS = ("segments", "pages.created", "pages.recycled", "pages.retired", "pages.returned")


def run(mode, case, arguments, number):
    """The results of all ranks, or what one of them said last."""
    count = 1 if case in ALONE else 2
    layers = max(1, arguments.layers // 5) if case in ALONE else arguments.layers
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "WORLD_SIZE": str(count),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(arguments.port + number)}
    command = [sys.executable, str(HERE / "sharded_rank.py"), mode, case, str(arguments.steps),
               str(layers)]
    ranks = [subprocess.Popen(command, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
             for rank in range(count)]
    said = []
    try:
        said = [rank.communicate(timeout=arguments.timeout) for rank in ranks]
    except subprocess.TimeoutExpired:
        return f"no end after {arguments.timeout} s"
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (_, err) in zip(ranks, said):
        if rank.returncode != 0:
            return (err.strip().splitlines() or [f"exit status {rank.returncode}"])[-1]
    return [json.loads(out.splitlines()[-1]) for out, _ in said]


def alternated(case, arguments):
    """mode -> its runs. A mode that fails is not run again: its reason stands for it."""
    results, failed, number = {mode: [] for mode in MODES}, {}, 0
    for _ in range(arguments.runs):
        for mode in MODES:
            if mode in failed:
                continue
            number += 1
            ranks = run(mode, case, arguments, number)
            failed.update({mode: ranks}) if isinstance(ranks, str) else results[mode].append(ranks)
    return results, failed


def calls(runs):
    """What a step asks of the driver: in the first three steps and in the last three."""
    steps = [[sum(step.get(name, 0) for name in CALLS) for step in rank["calls"]]
             for ranks in runs for rank in ranks]
    return [statistics.mean(count for rank in steps for count in rank[part])
            for part in (slice(3), slice(-3, None))]


def row(runs, reference):
    steps = zip(*(ranks[0]["ms"][2:] for ranks in runs))
    ms = statistics.mean(statistics.median(step) for step in steps)
    peak = max(rank["peak_mib"] for ranks in runs for rank in ranks)
    same = sum(all(rank[key] == first[key] for rank, first in zip(ranks, reference)
                   for key in ("losses", "sums")) for ranks in runs)
    first, last = calls(runs)
    return f"{peak:9,.0f} {ms:9,.0f} {f'{same} of {len(runs)}':>12} {first:10,.1f} / {last:,.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="of " + ", ".join(CASES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--port", type=int, default=29500, help="of the first run; each has the next")
    parser.add_argument("--timeout", type=int, default=600, metavar="S", help="of one run")
    arguments = parser.parse_args()
    for case in arguments.cases:
        if case not in CASES:
            parser.error(f"there is no case '{case}'; there are: {', '.join(CASES)}")
    if arguments.steps < 3 or arguments.runs < 1:
        parser.error("--steps takes 3 or more, and --runs 1 or more")
    print(f"{'':10}{'':12}{'MiB':>9} {'ms a step':>9} {'as PyTorch':>12} "
          "calls a step, first three / last three steps")
    for case in arguments.cases or CASES:
        results, failed = alternated(case, arguments)
        for mode in MODES:
            told = failed.get(mode) or row(results[mode], (results["default"] or results[mode])[0])
            print(f"{case:10}{mode:12}{told}", flush=True)


if __name__ == "__main__":
    main()
