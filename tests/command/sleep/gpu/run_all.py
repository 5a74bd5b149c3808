"""Puts programs on a GPU to sleep with `cistern sleep`, wakes them, and prints one table.

run_all.py [ROUNDS]: in the folder that build.sh has made. PyTorch's programs are left out where it is not there, and
that on Cistern where the package is not."""

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
MIB = 1 << 20
ENV = {**os.environ, "CISTERN_PRELOAD": os.path.join(HERE, "libcistern_preload.so")}
CISTERN, PYTHON = os.path.join(HERE, "cistern"), sys.executable
RUN = [CISTERN, "run", "--quiet"]
SLEEPABLE = {"CISTERN_SLEEPABLE": "1"}

# Name, command, environment.
PROGRAMS = [
    ("cudaMalloc, not on Cistern", ["./held_malloc"], {}),
    ("cudaMalloc, cistern run", [*RUN, "--", "./held_malloc"], {}),
    ("cudaMalloc, cistern run --sleepable", [*RUN, "--sleepable", "--", "./held_malloc"], {}),
    ("the same, busy", [*RUN, "--sleepable", "--", "./held_malloc", "busy"], {}),
    ("linked, pages and a graph", ["./held_pages"], SLEEPABLE),
]
if importlib.util.find_spec("torch") is not None:
    PROGRAMS.append(("PyTorch, not on Cistern", [PYTHON, "held_torch.py"], {}))
    if importlib.util.find_spec("cistern") is not None:
        PROGRAMS.append(("PyTorch on Cistern", [PYTHON, "held_torch.py", "cistern"], SLEEPABLE))


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def free_bytes():
    """Of GPU 0. The management library makes no context."""
    device, memory = ctypes.c_void_p(), Memory()
    assert NVML.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    assert NVML.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    return memory.free


class Failed(Exception):
    pass


def expect(line, expected):
    if line.strip() != expected:
        raise Failed(f"said {line.strip()!r}, not {expected!r}")


def pid_of(program, behind):
    """The program's, not that of `cistern run` before it."""
    if not behind:
        return program.pid
    with open(f"/proc/{program.pid}/task/{program.pid}/children") as children:
        return int(children.read().split()[0])


def command(verb, pid):
    begin = time.monotonic()
    ended = subprocess.run([CISTERN, verb, str(pid)], env=ENV, capture_output=True, text=True, timeout=200)
    print(f"    {ended.stdout}{ended.stderr}".rstrip().replace("\n", "\n    "), flush=True)
    if ended.returncode != 0:
        raise Failed(ended.stderr.strip())
    return {"driver": float(re.search(r"after ([\d.]+) s", ended.stdout)[1]), "whole": time.monotonic() - begin,
            "caches": (re.search(r"gave back (.*)", ended.stdout) or [None, "-"])[1]}


def look(program):
    program.stdin.write("\n")
    program.stdin.flush()
    expect(program.stdout.readline(), "right")


def rounds(name, args, env):
    """A row for each round; the last says what went wrong, if anything did."""
    before = free_bytes()
    program = subprocess.Popen(args, cwd=HERE, env={**ENV, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rows = []
    try:
        expect(program.stdout.readline(), "ready")
        pid = pid_of(program, "run" in args)
        look(program)
        for _ in range(ROUNDS):
            awake = free_bytes()
            slept = command("sleep", pid)
            asleep = free_bytes()
            woken = command("wake", pid)
            look(program)
            if asleep - awake < 1024 * MIB:
                raise Failed(f"only {(asleep - awake) // MIB} MiB were given back")
            rows.append([name, (before - awake) // MIB, (before - asleep) // MIB, (before - free_bytes()) // MIB,
                         slept["caches"], f"{slept['driver']:.3f}", f"{woken['driver']:.3f}",
                         f"{slept['whole']:.2f} {woken['whole']:.2f}", "right"])
        said = program.communicate(timeout=60)[0]
        if said or program.returncode != 0:
            raise Failed(f"ended with {program.returncode}: {said!r}")
    except (Failed, OSError, subprocess.TimeoutExpired) as error:
        rows.append([name, *["-"] * 7, str(error).splitlines()[0]])
    finally:
        program.kill()
        program.communicate()
    return rows


def refusal(verb, pid):
    ended = subprocess.run([CISTERN, verb, str(pid)], env=ENV, capture_output=True, text=True, timeout=200)
    print(f"    {ended.stderr.strip()}", flush=True)
    return ended.returncode == 1


def refusals():
    """Whether the driver's states are told apart."""
    idle = subprocess.Popen(["sleep", "60"])
    program = subprocess.Popen(["./held_malloc"], cwd=HERE, env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        expect(program.stdout.readline(), "ready")
        right = refusal("sleep", idle.pid) and refusal("wake", program.pid)
        command("sleep", program.pid)
        right = refusal("sleep", program.pid) and right
        command("wake", program.pid)
        look(program)
        return right
    except (Failed, OSError, subprocess.TimeoutExpired) as error:
        print(f"    {error}")
        return False
    finally:
        for process in (idle, program):
            process.kill()
            process.communicate()


if __name__ == "__main__":
    NVML = ctypes.CDLL("libnvidia-ml.so.1")
    assert NVML.nvmlInit_v2() == 0
    table = [["program", "MiB awake", "asleep", "woken", "caches gave", "sleep s", "wake s", "commands s", "contents"]]
    for program in PROGRAMS:
        print(program[0], flush=True)
        table += rounds(*program)
    print("refusals", flush=True)
    table.append(["refusals", *["-"] * 7, "right" if refusals() else "wrong"])
    widths = [max(len(str(row[i])) for row in table) for i in range(len(table[0]))]
    for row in table:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
    sys.exit(any(row[-1] != "right" for row in table[1:]))
