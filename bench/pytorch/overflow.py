#!/usr/bin/env python3
"""Training beyond the device's memory. Needs a GPU.

Each program is run without a cap first, which says what it needs. It is then run with a cap on the device's memory, in
each mode:

  overflow              what the device has no room for lies in the host's memory
  host_activations      the same, and cistern.torch.host_activations() around each step
  in_line               the same, with the copies in the stream of the work (only if --modes names it)
  host_optimizer_state  the same as overflow, with the optimiser's state in the host's memory
  save_on_cpu           torch.autograd.graph.save_on_cpu(pin_memory=True), without overflow
  checkpoint            activation checkpointing of each layer, without overflow

The last two run on the smallest device that they fit. The table has ms a step (the median of the second half of the
steps), whether the losses are those without a cap, and the GiB that lay in the host's memory. The floor is what the bus takes to move the bytes beyond the cap there and back.
A row that ran out of memory, or failed, says so; the rest goes on. Each program has a process of its own."""

import argparse
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

OWN = ("save_on_cpu", "checkpoint")  # without overflow
MODES = ("overflow", "host_activations", "host_optimizer_state", "save_on_cpu", "checkpoint")
NAMES = ("gpt2_medium", "resnet152", "unet", "lora", "dit")
GIB = 1 << 30


# ---- A process that runs one program ---------------------------------------------------------------


def bus_rates(torch, cistern):
    """GB/s to the host and back: of pinned memory, and of pages in host memory."""
    device = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    with cistern.torch.host_memory():
        pages = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    rates = {}
    for name, host in (("pinned", torch.empty(GIB, dtype=torch.uint8, pin_memory=True)), ("pages", pages)):
        for way, to, of in (("out", host, device), ("back", device, host)):
            times = []
            for _ in range(4):
                torch.cuda.synchronize()
                begun = time.perf_counter()
                to.copy_(of, non_blocking=True)
                torch.cuda.synchronize()
                times.append(time.perf_counter() - begun)
            rates[f"{name}_{way}"] = round(GIB / min(times) / 1e9, 1)
    return rates


class Bench:
    def __init__(self, arguments):
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # for results that repeat
        import cistern.torch

        cistern.torch.enable("native")
        import torch

        import overflow_programs

        self.torch, self.cistern, self.arguments = torch, cistern, arguments
        self.make = overflow_programs.PROGRAMS[arguments.child]
        self.allocator = cistern.default(0)
        self.capacity = torch.cuda.mem_get_info()[1]
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(True)

    def report(self, **row):
        print(json.dumps({"program": self.arguments.child, **row}), flush=True)

    def clear(self):
        gc.collect()
        self.torch.cuda.synchronize()
        self.torch.cuda.empty_cache()
        self.allocator.empty_cache()  # pools in host memory too
        self.torch.cuda.reset_peak_memory_stats()
        self.torch.cuda.reset_peak_host_memory_stats()

    def around_step(self, mode):
        if mode in ("host_activations", "in_line"):
            from cistern.torch import _store

            _store.OVERLAPS = mode == "host_activations"
            return self.cistern.torch.host_activations()
        if mode == "save_on_cpu":
            return self.torch.autograd.graph.save_on_cpu(pin_memory=True)
        return contextlib.nullcontext()

    def train(self, mode):
        """The losses, the time of each step in ms, and the bytes of each step: moved, and served by overflow."""
        torch = self.torch
        torch.manual_seed(1)
        run = self.make("cuda", self.arguments.small)
        run.checkpoints = mode == "checkpoint"
        if mode == "host_optimizer_state":
            self.cistern.torch.host_optimizer_state(run.optimizer)
        around = self.around_step(mode)
        losses, times, moved, served, begun = [], [], [], [], time.perf_counter()
        for number in range(self.arguments.steps):
            start = time.perf_counter()
            with around:
                loss = run.step(number)
                loss.backward()
            run.optimizer.step()
            losses.append(loss.detach().item())  # waits
            del loss
            times.append(1e3 * (time.perf_counter() - start))
            moved.append(around.last_step().moved if mode in ("host_activations", "in_line") else 0)
            served.append(self.allocator.overflow().handed_out)
            if number > 0 and time.perf_counter() - begun > self.arguments.longest:
                break
        host = self.allocator.stats_dict()["host_page_bytes"]
        return {"losses": losses, "times": times, "moved": moved, "served": served, "host": host}

    def row(self, mode, percent, cap, overflow):
        self.clear()
        self.allocator.limit = cap
        try:
            self.allocator.set_overflow(overflow)
            row = self.train(mode)
            row["ms"] = statistics.median(row["times"][len(row["times"]) // 2:])
            row["peak"], row["overflow"] = self.torch.cuda.max_memory_reserved(), self.allocator.overflow().reserved
            if mode == "save_on_cpu":
                row["host"] += self.pinned()
        except self.torch.OutOfMemoryError as full:
            row = {"failed": "out of memory", "why": str(full).splitlines()[0]}
        except Exception as failure:  # the other rows are worth having
            row = {"failed": type(failure).__name__, "why": str(failure).splitlines()[0] if str(failure) else ""}
        finally:
            self.clear()
            self.allocator.set_overflow(0)
            self.allocator.limit = self.capacity
            self.clear()
        self.report(mode=mode, percent=percent, cap=cap, **row)
        return row

    def pinned(self):
        return self.torch.cuda.host_memory_stats()["allocated_bytes.peak"]

    def uncapped(self):
        row = self.row("no cap", 100, self.capacity, 0)
        if "deterministic" in row.get("why", ""):
            self.torch.use_deterministic_algorithms(True, warn_only=True)
            row = self.row("no cap", 100, self.capacity, 0)
        return row

    def all(self):
        self.train_to_warm_up()
        self.report(rates=bus_rates(self.torch, self.cistern))
        free = self.uncapped()
        if "failed" in free:
            return
        for percent in self.arguments.percent:
            for mode in self.arguments.modes:
                host = min(2 * free["peak"], self.cistern._overflow.host_bytes_left())
                if mode not in OWN:
                    self.row(mode, percent, int(free["peak"] * percent / 100), host)
        for mode in OWN:  # a larger device changes nothing, if one fits
            for percent in sorted(self.arguments.percent) if mode in self.arguments.modes else ():
                if "failed" not in self.row(mode, percent, int(free["peak"] * percent / 100), 0):
                    break

    def train_to_warm_up(self):
        """Libraries load their kernels and take their workspaces, which stay."""
        steps, self.arguments.steps = self.arguments.steps, 1
        with contextlib.suppress(Exception):
            self.train("no cap")
        self.arguments.steps = steps


# ---- The table -------------------------------------------------------------------------------------


def rows_of(name, arguments):
    """What the program's process reports, as far as it came."""
    command = [sys.executable, str(Path(__file__).resolve()), "--child", name, "--steps", str(arguments.steps),
               "--longest", str(arguments.longest), "--percent", *map(str, arguments.percent),
               "--modes", *arguments.modes, *(["--small"] if arguments.small else [])]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("{"):
                rows.append(json.loads(line))
                if arguments.log:
                    with open(arguments.log, "a", encoding="utf-8") as log:
                        log.write(line)
    if process.returncode != 0:
        print(f"{name}: its process ended with {process.returncode}")
    return rows


def losses_as(row, base):
    pairs = list(zip(row["losses"], base["losses"]))
    if all(a == b for a, b in pairs):
        return "equal"
    return f"differ by {max(abs(a - b) for a, b in pairs):.1e}"


def show(name, rows):
    rates = next((row["rates"] for row in rows if "rates" in row), None)
    base = next((row for row in rows if row.get("mode") == "no cap" and "failed" not in row), None)
    for row in rows:
        if "failed" in row:
            print(f"{name}, {row['mode']} at {row['percent']} %: {row['failed']}: {row['why']}")
    if base is None or rates is None:
        return
    print(f"\n### {name}: needs {base['peak'] / GIB:.2f} GiB; the bus, in GB/s: {rates}\n")
    print("| % | mode | ms a step | times | floor, ms | losses | GiB on the host | GiB moved a step |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        if "mode" not in row:
            continue
        beyond = base["peak"] - min(row["cap"], base["peak"])
        floor = base["ms"] + beyond / 1e6 * (1 / rates["pages_out"] + 1 / rates["pages_back"])
        if "failed" in row:
            print(f"| {row['percent']} | {row['mode']} | {row['failed']} | | {floor:.0f} | | | |")
            continue
        print(f"| {row['percent']} | {row['mode']} | {row['ms']:.0f} | {row['ms'] / base['ms']:.2f} | {floor:.0f} | "
              f"{losses_as(row, base)} | {row['host'] / GIB:.2f} | {row['moved'][-1] / GIB:.2f} |")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--percent", nargs="+", type=float, default=[97, 90, 80], help="of what the program needs")
    parser.add_argument("--modes", nargs="+", choices=(*MODES, "in_line"), default=MODES)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--longest", type=float, default=20, help="seconds: a row ends after the step that exceeds it, the second or later")
    parser.add_argument("--small", action="store_true", help="tiny programs, to try this file")
    parser.add_argument("--log", help="a file to which each row is appended as it comes")
    parser.add_argument("--child", choices=NAMES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        Bench(arguments).all()
        return
    for name in arguments.programs:
        show(name, rows_of(name, arguments))


if __name__ == "__main__":
    main()
