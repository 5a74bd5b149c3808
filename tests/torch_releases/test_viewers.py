"""PyTorch's viewer finds the segment of each block, and its own script (torch/cuda/_memory_viz.py) reads every snapshot
that Cistern writes."""

import ctypes
import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cistern.torch

MIB = 1 << 20
SOURCES = Path(__file__).resolve().parents[2]
COMMAND = Path(os.environ["CISTERN_ROOT"]) / "build/release/interop/command/cistern"
SCRIPT = Path(torch.__file__).parent / "cuda/_memory_viz.py"
# `memory` and `compare` fetch a script for pictures from the network.
ACTIONS = ("stats", "trace", "trace_plot", "segment_plot")

# A block on two pages that sleep and wake, and one in host memory.
SLEEPS = """# {"recording": 1, "device": "cuda:0"}
r map 200000 2097152 0 0 1
r map 400000 2097152 0 0 1
a 3000000 0 1 200000 0 0 0
r map 800000 2097152 0 0 1 host
a 1000 0 1 800000 0 0 0
r unmap 200000 2097152 0 0 1
r unmap 400000 2097152 0 0 1
r map 200000 2097152 0 0 1
r map 400000 2097152 0 0 1
f 0 1
"""


def block(mebibytes):
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")


def walk(snapshot):
    """Back from the end, as the viewer goes."""
    spec = importlib.util.spec_from_file_location("view_snapshot", SOURCES / "tests/recording/view_snapshot.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.walk(snapshot)


@pytest.fixture
def recording():
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    yield
    torch.cuda.memory._record_memory_history(None)


def actions_at(snapshot, tensor):
    return [event["action"] for event in snapshot["device_traces"][0]
            if event["addr"] == tensor.data_ptr() and not event["action"].startswith("segment_")]


GONE = ["free_requested", "free_completed"]


def test_pytorchs_viewer_finds_the_segment_of_each_block_of_a_region(recording):
    with cistern.torch.region("viewed"):
        freed, kept = block(40), block(30)
    side = torch.cuda.Stream()
    kept.record_stream(side)
    address = freed.data_ptr()
    cistern.torch.sleep("viewed")
    asleep = torch.cuda.memory._snapshot()
    walk(asleep)
    assert actions_at(asleep, kept) == ["alloc", *GONE]
    del freed
    cistern.torch.wake("viewed")
    awake = torch.cuda.memory._snapshot()
    walk(awake)
    assert actions_at(awake, kept) == ["alloc", *GONE, "alloc"]
    of_the_freed = [event["action"] for event in awake["device_traces"][0] if event["addr"] == address]
    assert of_the_freed.count("free_completed") == 1
    with cistern.torch.host_memory():
        held = block(8)
    assert actions_at(torch.cuda.memory._snapshot(), held) == []
    del held
    walk(torch.cuda.memory._snapshot())


def test_the_viewers_file_has_a_region_that_slept_before_the_recording(direct):
    count = ctypes.c_int()
    direct("traced", ctypes.byref(count))  # a tracker, which stays, hears of the sleep
    with cistern.torch.region("slept before"):
        made = block(20)
    cistern.torch.sleep("slept before")
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    cistern.torch.wake("slept before")
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(None)
    walk(snapshot)
    assert actions_at(snapshot, made) == ["alloc"]


def read_by_pytorchs_script(snapshot, folder):
    for action in ACTIONS:
        out = folder / f"{action}.html"
        written = ["-o", out] if action.endswith("_plot") else []
        ran = subprocess.run([sys.executable, SCRIPT, action, snapshot, *written], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        assert "MemoryViz.js" in out.read_text(encoding="utf-8") if written else ran.stdout


def test_pytorchs_script_reads_what_dump_snapshot_writes(tmp_path):
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    with cistern.torch.region("in a file"):
        held = [block(size) for size in (3, 20, 1)]
    with cistern.torch.host_memory():
        host = block(4)
    files = [tmp_path / "asleep.pickle", tmp_path / "awake.pickle"]
    cistern.torch.sleep("in a file")
    torch.cuda.memory._dump_snapshot(files[0])
    cistern.torch.wake("in a file")
    torch.cuda.memory._dump_snapshot(files[1])
    torch.cuda.memory._record_memory_history(None)
    del held, host
    for file in files:
        walk(pickle.loads(file.read_bytes()))
        read_by_pytorchs_script(file, tmp_path)


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
def test_pytorchs_script_reads_what_a_report_writes(tmp_path):
    sleeps, made = tmp_path / "sleeps.trace", tmp_path / "made.pickle"
    sleeps.write_text(SLEEPS, encoding="ascii")
    for trace in (sleeps, SOURCES / "bench/traces/maskrcnn.trace.gz"):
        subprocess.run([COMMAND, "report", trace, "--format", "pickle", "-o", made], check=True)
        read_by_pytorchs_script(made, tmp_path)
