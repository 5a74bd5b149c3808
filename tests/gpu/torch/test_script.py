"""python -m cistern.torch: a script that is not changed."""

import gzip
import os
import re
import subprocess
import sys

import pytest
import torch
from cistern import replay

SCRIPT = """
import sys, torch
assert __name__ == "__main__" and sys.argv[1:] == ["--steps", "3"]
blocks = [torch.ones(8 << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
del blocks[1]
big = torch.ones(16 << 20, dtype=torch.uint8, device="cuda")
print("done", torch.cuda.get_allocator_backend())
sys.exit(7)
"""


def test_a_script_runs_as_it_is_and_its_trace_replays(tmp_path):
    script, trace = tmp_path / "script.py", tmp_path / "kept.trace.gz"
    script.write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "-m", "cistern.torch", "--trace", str(trace), str(script), "--steps", "3"],
        capture_output=True, text=True, check=False,
    )
    assert ran.returncode == 7, ran.stderr
    assert ran.stdout.split() == ["done", "cistern"]
    assert "requested 32.00 MiB at the peak on cuda:0, and Cistern reserved " in ran.stderr
    with gzip.open(trace, "rt") as lines:
        events = [line[0] for line in lines]
    assert events.count("a") == 4 and events.count("f") >= 1
    assert replay(trace).peak_requested_bytes == 32 << 20


def test_no_script_is_said(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "cistern.torch", str(tmp_path / "none.py")],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )
    assert ran.returncode == 1 and "there is no script" in ran.stderr


def run_script(tmp_path, source, *options):
    script = tmp_path / "script.py"
    script.write_text(source)
    ran = subprocess.run([sys.executable, "-m", "cistern.torch", "--compare", *map(str, options), str(script)],
                         capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, {name: float(gib) for name, gib in
                        re.findall(r"^  (\S.*?)  +([\d.]+) GiB", ran.stderr, re.M)}


def test_the_report_is_the_traces_whatever_is_reset(tmp_path):
    _, figures = run_script(tmp_path, """
import torch
big = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
del big
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
small = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
""")
    assert figures["asked for"] == 1 and 1 <= figures["reserved"] < 1.1 and figures["PyTorch"] >= 1


USES = """
import torch
side = torch.cuda.Stream()
for _ in range(4):
    block = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
    block.record_stream(side)
    del block
torch.cuda.synchronize()
last = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
"""


def test_the_models_keep_blocks_that_other_streams_use(tmp_path):
    trace = tmp_path / "kept.trace"
    _, figures = run_script(tmp_path, USES, "--trace", trace)
    lines = trace.read_text().splitlines()
    assert '"stream_uses": "recorded"' in lines[0]
    assert [line[0] for line in lines[1:]] == list("afafafafeeeea")
    assert figures["asked for"] == 0.062
    assert figures["PyTorch"] == 0.25 and 0.25 <= figures["PyTorch, expandable segments"] < 0.28


FORKS = """
import os, sys, torch
kept = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
pid = os.fork()
if pid == 0:
    sys.exit(0)
os.waitpid(pid, 0)
kept = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
"""


def test_a_child_of_fork_does_not_end_the_recording(tmp_path):
    trace = tmp_path / "kept.trace"
    _, figures = run_script(tmp_path, FORKS, "--trace", trace)
    assert figures["asked for"] == 0.251 and trace.read_text().count("\na ") == 2


SPAWNS = """
import sys, torch, torch.multiprocessing
import cistern.torch
def adds(queue, back):
    queue.get().add_(1)
    torch.cuda.synchronize()
    back.put((__name__, cistern.torch.enabled()))
if __name__ == "__main__":
    context = torch.multiprocessing.get_context("WAY")
    queue, back = context.Queue(), context.Queue()
    child = context.Process(target=adds, args=(queue, back))
    child.start()
    shared = torch.zeros(1 << 20, device="cuda")
    queue.put(shared)
    print(*back.get(timeout=120))
    child.join()
    print(int(shared.sum()))
"""


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_a_cuda_tensor_goes_to_a_child(tmp_path, way):
    trace = tmp_path / "kept.trace"
    printed, _ = run_script(tmp_path, SPAWNS.replace("WAY", way), "--trace", trace)
    assert printed.split() == ["__mp_main__", "native", str(1 << 20)]
    assert f"a {4 << 20} 0" in trace.read_text()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two GPUs")
def test_each_gpu_has_a_trace(tmp_path):
    _, figures = run_script(tmp_path, """
import torch
kept = [torch.empty((i + 1) << 30, dtype=torch.uint8, device=f"cuda:{i}") for i in (1, 0)]
""", "--trace", tmp_path / "t.trace.gz")
    assert figures["asked for"] == 3 and 3 <= figures["reserved"] < 3.1
    assert replay(tmp_path / "t.trace.gz").peak_requested_bytes == 1 << 30
    assert replay(tmp_path / "t.cuda1.trace.gz").peak_requested_bytes == 2 << 30
