"""Runs the programs of this folder on a GPU, as they are and under `cistern run`, and prints one table.

run_all.py [FOLDER_FOR_LOGS [WORDS]]: in the folder that build.sh has made. With words, the programs alone whose
names have one of them ("start": what a start takes)."""

import json
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LOGS = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("OUT", "/tmp")
ENV = {**os.environ, "CISTERN_PRELOAD": os.path.join(HERE, "libcistern_preload.so"),
       "LD_LIBRARY_PATH": ":".join(p for p in (os.path.join(HERE, "lib"),
                                               os.environ.get("LD_LIBRARY_PATH", "")) if p)}
UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
# XLA times its kernels and takes the quickest: two runs may differ in the last bit unless it is told not to.
REPEATED = {"XLA_FLAGS": "--xla_gpu_autotune_level=0"}
PLATFORM = {**REPEATED, "XLA_PYTHON_CLIENT_ALLOCATOR": "platform", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
BFC = {**REPEATED, "XLA_PYTHON_CLIENT_ALLOCATOR": "bfc"}
PYTHON = sys.executable

# Name, command, environment; and the same program on its own allocator, to compare with, where it has one. Then the
# options of `cistern run`, if any.
LOOPS = [(sizes, streams) for sizes in ("1", "2", "mixed") for streams in ("0", "1", "2")]
USES = {"0": "unused", "1": "one stream", "2": "two streams"}
PROGRAMS = [
    *[(f"loop of {sizes if sizes == 'mixed' else sizes + ' MiB'}, {USES[streams]}, {runtime}",
       [f"./alloc_loop_{runtime}", sizes, streams], {}, None)
      for runtime in ("static", "shared") for sizes, streams in LOOPS],
    *[(f"free_busy {kind}", ["./free_busy_static", kind], {}, None)
      for kind in ("nonblocking", "blocking", "legacy", "thread")],
    ("free_busy nonblocking, shared", ["./free_busy_shared", "nonblocking"], {}, None),
    ("hold_back", ["./hold_back_static"], {}, None),
    *[(f"odd calls, {runtime}", [f"./odd_calls_{runtime}"], {}, None) for runtime in ("static", "shared")],
    *[(f"ipc, {runtime}{also}", [f"./ipc_{runtime}"], {}, None, *options)
      for runtime in ("static", "shared")
      for also, options in (("", []), (", both served", ["--follow-children"]), (", left to the driver", ["--ipc"]))],
    *[(f"overflow, {runtime}", [f"./overflow_{runtime}", "4096"], {}, None, "--conf", "limit:4GiB", "--overflow", "4GiB")
      for runtime in ("static", "shared")],
    ("PyTorch, ipc", [PYTHON, "torch_share.py"], {}, None),
    ("PyTorch, ipc, both served", [PYTHON, "torch_share.py"], {}, None, "--follow-children"),
    *[(f"PyTorch, NCCL on two GPUs, {how}", [PYTHON, "two_gpus.py"],
       {**UNCACHED, "NCCL_CUMEM_ENABLE": pages}, None, "--follow-children")
      for how, pages in (("by handles", "0"), ("by pages of its own", "1"))],
    ("PyTorch, counted", [PYTHON, "torch_counts.py"], UNCACHED, None),
    ("PyTorch, uncached", [PYTHON, "torch_train.py"], UNCACHED, {}),
    ("PyTorch, libraries", [PYTHON, "torch_libraries.py"], UNCACHED, {}),
    ("CuPy without its pool", [PYTHON, "cupy_nopool.py"], {}, None),
    ("JAX, platform", [PYTHON, "jax_platform.py"], PLATFORM, BFC),
]
CISTERN = ["./cistern", "run", "--stats"]


def run(name, command, env, served, options=()):
    log = os.path.join(LOGS, re.sub(r"\W+", "_", f"{name}_{served}"))
    start = [*CISTERN, *options, "--json", log + ".json", "--"] if served else []
    try:
        ended = subprocess.run([*start, *command], cwd=HERE, env={**ENV, **env}, text=True,
                               capture_output=True, timeout=60)
        status, out, err = ended.returncode, ended.stdout, ended.stderr
    except subprocess.TimeoutExpired as late:
        status, out, err = "late", str(late.stdout or ""), str(late.stderr or "")
    with open(log + ".txt", "w") as file:
        file.write(f"status {status}\n{out}\n---- stderr\n{err}\n")
    result = re.search(r"RESULT (.*)", out)
    metric = re.search(r"METRIC (\w+) (\S+)", out)
    summary = {}
    if served and os.path.exists(log + ".json"):
        with open(log + ".json") as file:
            summary = (json.load(file)["processes"] or [{}])[0]
    submissions = re.search(r"SUBMISSIONS (\d+)", out)
    return {"submissions": int(submissions[1]) if submissions else None, "status": status, "result": result[1] if result else "none", "summary": summary,
            "unit": metric[1] if metric else "", "value": float(metric[2]) if metric else None}


def figure(run_):
    return "-" if run_ is None or run_["value"] is None else f"{run_['value']:.3f}"


def seen(run_):
    """What the hooks have seen of the program's submissions; and calls that may have been some."""
    s = run_["summary"]
    if not s:
        return "-"
    asked = run_["submissions"]
    missing = "" if asked is None or s["work"] >= asked else " MISSING"
    names = s["unknown_functions"].split()
    few = " ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{s['work']}{'' if asked is None else f'/{asked}'}{missing} +{s['unknown_work']} {few}"


def row(name, command, env, own, *options):
    plain, ours = run(name, command, env, False), run(name, command, env, True, options)
    native = run(name + " own", command, own, False) if own is not None else None
    overflowed = "--overflow" not in options or ours["summary"].get("host_reserved_peak_bytes", 0) > 0
    same = "yes" if plain["result"] == ours["result"] and ours["status"] == 0 and overflowed else \
        f"NO ({plain['result']} {plain['status']} | {ours['result']} {ours['status']})"
    ratio = f"{plain['value'] / ours['value']:.1f}" if plain["value"] and ours["value"] else "-"
    s = ours["summary"]
    calls = sum(v["calls"] for v in s.get("served", {}).values()) if s else 0
    memory = f"{s['requested_peak_bytes'] >> 20}/{s['reserved_peak_bytes'] >> 20}" if s else "-"
    memory += f" ({s['host_reserved_peak_bytes'] >> 20} host)" if s and s["host_reserved_peak_bytes"] else ""
    barriers = str(s["barriers"]) if s else "-"
    return [name, same, ours["unit"] or plain["unit"], figure(plain), figure(ours), ratio,
            figure(native), str(calls), memory, barriers, seen(ours)]


def start_up(kind, rounds=9):
    """What a program that only makes its context takes, as it is and under `cistern run`, by turns: ms, medians."""
    took = {(): [], tuple([*CISTERN[:2], "--quiet", "--"]): []}
    for _ in range(rounds):
        for start, times in took.items():
            begin = time.perf_counter()
            subprocess.run([*start, f"./first_call_{kind}"], cwd=HERE, env=ENV, check=True, timeout=60)
            times.append(1e3 * (time.perf_counter() - begin))
    plain, ours = ((statistics.median(t), min(t), max(t)) for t in took.values())
    print(f"start, {kind} runtime: {plain[0]:.1f} ms ({plain[1]:.1f} to {plain[2]:.1f}); under cistern run "
          f"{ours[0]:.1f} ({ours[1]:.1f} to {ours[2]:.1f}): {ours[0] - plain[0]:+.1f} ms", flush=True)


def main():
    subprocess.run(["./cistern", "doctor"], cwd=HERE, env=ENV, timeout=120)
    chosen = sys.argv[2:]
    if not chosen or "start" in chosen:
        for kind in ("static", "shared"):
            start_up(kind)
    head = ["program", "same result", "unit", "driver", "cistern run", "x", "own allocator",
            "calls served", "MiB asked/reserved", "barriers", "work seen"]
    print(" | ".join(head), flush=True)
    for program in PROGRAMS:
        if chosen and not any(word in program[0] for word in chosen):
            continue
        print(" | ".join(row(*program)), flush=True)


main()
