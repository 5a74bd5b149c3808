"""Runs the programs of this folder on a GPU, as they are and under `cistern run`, and prints one table.

run_all.py [FOLDER_FOR_LOGS]: in the folder with cistern, libcistern_preload.so and the built programs."""

import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LOGS = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("OUT", "/tmp")
ENV = {**os.environ, "CISTERN_PRELOAD": os.path.join(HERE, "libcistern_preload.so"),
       "LD_LIBRARY_PATH": ":".join(p for p in (os.path.join(HERE, "lib"),
                                               os.environ.get("LD_LIBRARY_PATH", "")) if p)}
UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
PLATFORM = {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
BFC = {"XLA_PYTHON_CLIENT_ALLOCATOR": "bfc"}
PYTHON = sys.executable

# Name, command, environment; and the same program on its own allocator, to compare with, where it has one.
PROGRAMS = [
    ("alloc_loop, static runtime", ["./alloc_loop_static"], {}, None),
    ("alloc_loop, shared runtime", ["./alloc_loop_shared"], {}, None),
    *[(f"free_busy {kind}", ["./free_busy_static", kind], {}, None)
      for kind in ("nonblocking", "blocking", "legacy", "thread")],
    ("free_busy nonblocking, shared", ["./free_busy_shared", "nonblocking"], {}, None),
    ("PyTorch, uncached", [PYTHON, "torch_train.py"], UNCACHED, {}),
    ("PyTorch, libraries", [PYTHON, "torch_libraries.py"], UNCACHED, {}),
    ("CuPy without its pool", [PYTHON, "cupy_nopool.py"], {}, None),
    ("JAX, platform", [PYTHON, "jax_platform.py"], PLATFORM, BFC),
]


def run(name, command, env, served):
    log = os.path.join(LOGS, re.sub(r"\W+", "_", f"{name}_{served}"))
    start = ["./cistern", "run", "--stats", "--json", log + ".json", "--"] if served else []
    try:
        ended = subprocess.run([*start, *command], cwd=HERE, env={**ENV, **env}, text=True,
                               capture_output=True, timeout=150)
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
    return {"status": status, "result": result[1] if result else "none", "summary": summary,
            "unit": metric[1] if metric else "", "value": float(metric[2]) if metric else None}


def figure(run_):
    return "-" if run_ is None or run_["value"] is None else f"{run_['value']:.3f}"


def row(name, command, env, own):
    plain, ours = run(name, command, env, False), run(name, command, env, True)
    native = run(name + " own", command, own, False) if own is not None else None
    same = "yes" if plain["result"] == ours["result"] and ours["status"] == 0 else \
        f"NO ({plain['result']} {plain['status']} | {ours['result']} {ours['status']})"
    ratio = f"{plain['value'] / ours['value']:.1f}" if plain["value"] and ours["value"] else "-"
    s = ours["summary"]
    calls = sum(v["calls"] for v in s.get("served", {}).values()) if s else 0
    memory = f"{s['requested_peak_bytes'] >> 20}/{s['reserved_peak_bytes'] >> 20}" if s else "-"
    return [name, same, ours["unit"] or plain["unit"], figure(plain), figure(ours), ratio,
            figure(native), str(calls), memory]


def main():
    subprocess.run(["./cistern", "doctor"], cwd=HERE, env=ENV, timeout=120)
    head = ["program", "same result", "unit", "driver", "cistern run", "x", "own allocator",
            "calls served", "MiB asked/reserved"]
    print(" | ".join(head), flush=True)
    chosen = sys.argv[2:]
    for program in PROGRAMS:
        if chosen and not any(word in program[0] for word in chosen):
            continue
        print(" | ".join(row(*program)), flush=True)


main()
