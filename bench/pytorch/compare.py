#!/usr/bin/env python3
"""Programs under PyTorch's own allocator, its expandable segments and Cistern, side by side; needs a GPU.

  compare.py [PROGRAM...]              the programs of programs.py, or of --programs FILE
  compare.py --allocations             allocations a second, of 1 and 8 threads without Python's lock

Each program runs in a process of its own, --runs times under each allocator in turn, so that what
else the machine does meets all of them. Memory is the driver's: the most that is used at the end of
a step, less what was before the first tensor, and the most of all runs. Time is a step's, by events
on the GPU from the third step on: each step's median of all runs, as what else the machine does
seldom meets the same step twice; then the mean of the steps, and beside it the runs' own means,
from the quickest to the slowest. The two figures at the end are Cistern's time over the better of
PyTorch's: by those medians, and by each step's quickest run, as a machine that others use only ever
adds.
"""

import argparse
import ast
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODES = ("default", "expandable", "cistern")


def run(mode, file, program, steps):
    """The result, or what the program said last."""
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    ran = subprocess.run(
        [sys.executable, str(HERE / "under.py"), mode, str(file), program, str(steps)],
        capture_output=True, text=True, check=False, env=environment,
    )
    if ran.returncode != 0:
        return (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]
    return json.loads(ran.stdout.splitlines()[-1])


def alternated(runs, *args):
    """mode -> its results. A mode that fails is not run again: its reason stands for it."""
    results = {mode: [] for mode in MODES}
    failed = {}
    for number in range(runs):
        for mode in MODES[number % 3 :] + MODES[: number % 3]:
            if mode in failed:
                continue
            result = run(mode, *args)
            if isinstance(result, str):
                failed[mode] = result
            else:
                results[mode].append(result)
    return results, failed


def milliseconds(results):
    runs = [result["ms"] for result in results]
    means = sorted(map(statistics.mean, runs))
    steps = list(zip(*runs))
    medians, quickest = map(statistics.median, steps), map(min, steps)
    return statistics.mean(medians), means[0], means[-1], statistics.mean(quickest)


def losses(results):
    """What can be said of all runs' losses."""
    every = {mode: {tuple(r["losses"]) for r in of} for mode, of in results.items() if of}
    if len(set().union(*every.values())) == 1:
        return "the same to the last bit"
    pytorchs = every.get("default", set()) | every.get("expandable", set())
    mine = every.get("cistern", set())
    spread = max((distance(a, b) for a in pytorchs for b in pytorchs), default=0)
    away = max((min(distance(a, b) for b in pytorchs) for a in mine if pytorchs), default=0)
    repeats = "PyTorch's own runs differ too, by" if len(pytorchs) > 1 else "PyTorch repeats itself:"
    return f"within {away:.1e}; {repeats} {spread:.1e}"


def distance(a, b):
    return max(abs(x - y) / max(abs(x), abs(y), 1e-30) for x, y in zip(a, b))


def row(program, results, failed):
    cells = [program]
    one = next((of[0] for of in results.values() if of), None)
    cells.append(f"{one['asked_mib']:,.0f}" if one else "-")
    for mode in MODES:
        peaks = [result["peak_mib"] for result in results[mode]]
        cells.append(f"{max(peaks):,.0f}" if peaks else failed.get(mode, "-")[:60])
    times = {mode: milliseconds(of) for mode, of in results.items() if of}
    for mode in MODES:
        cells.append("{:.1f} ({:.1f}-{:.1f})".format(*times[mode]) if mode in times else "-")
    others = [times[mode] for mode in MODES[:2] if mode in times]
    both = others and "cistern" in times
    cells.append(", ".join(f"{times['cistern'][of] / min(other[of] for other in others):.3f}"
                           for of in (0, 3)) if both else "-")
    cells.append(losses(results))
    return cells


def print_row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def print_head(cells):
    print_row(cells)
    print("|" + "---|" * len(cells), flush=True)


def names_in(file):
    """The generators that stand in the file, in order."""
    tree = ast.parse(Path(file).read_text())
    return [
        node.name for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        and any(isinstance(part, ast.Yield) for part in ast.walk(node))
    ]


def compare_programs(options):
    known = names_in(options.programs)
    unknown = set(options.names) - set(known)
    if unknown:
        sys.exit(f"{options.programs} has no {', '.join(sorted(unknown))}; it has {', '.join(known)}")
    print_head([
        "program", "asked MiB", *(f"{mode} MiB" for mode in MODES),
        *(f"{mode} ms a step" for mode in MODES), "Cistern / the better", "losses",
    ])
    for program in options.names or known:
        results, failed = alternated(options.runs, options.programs, program, options.steps)
        print_row(row(program, results, failed))
        for mode, reason in failed.items():
            print(f"{program} under {mode}: {reason}", file=sys.stderr)


def compare_allocations(options):
    print_head(["threads, each with a stream", "tensors", *MODES, "Cistern / the better"])
    for threads in ("1", "8"):
        results, failed = alternated(options.runs, "allocations", threads, options.seconds)
        for mode, reason in failed.items():
            print(f"{threads} threads under {mode}: {reason}", file=sys.stderr)
        for kind in ("alone", "with a kernel each"):
            rates = {
                mode: sorted(result[kind] for result in of) for mode, of in results.items() if of
            }
            cells = [threads, kind]
            for mode in MODES:
                of = rates.get(mode)
                cells.append(
                    f"{statistics.median(of):,.0f}/s ({of[0]:,.0f}-{of[-1]:,.0f})" if of else "-"
                )
            others = [statistics.median(rates[mode]) for mode in MODES[:2] if mode in rates]
            mine = rates.get("cistern")
            cells.append(
                f"{statistics.median(mine) / max(others):.2f}" if others and mine else "-"
            )
            print_row(cells)


def require_gpu():
    has = [sys.executable, "-c", "import torch; torch.cuda.init()"]
    ran = subprocess.run(has, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"PyTorch with a GPU is needed: {(ran.stderr.strip().splitlines() or ['no reason'])[-1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PROGRAM")
    parser.add_argument("--programs", default=str(HERE / "programs.py"), metavar="FILE",
                        help="a Python file of generators program(torch, steps) that yield losses")
    parser.add_argument("--runs", type=int, default=5, help="under each allocator; default 5")
    parser.add_argument("--steps", type=int, default=16, help="of each program; default 16")
    parser.add_argument("--allocations", action="store_true", help="allocations a second instead")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each; default 2")
    options = parser.parse_args()
    require_gpu()
    since = time.monotonic()
    compare_allocations(options) if options.allocations else compare_programs(options)
    print(f"\n{time.monotonic() - since:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
