"""A library that loads CUDA's runtime (CISTERN_CUDA_RUNTIME=loaded), beside PyTorch's. $CISTERN_TEST_CUDART names
another runtime than PyTorch's, to stand in one process with it."""

import json
import os
import subprocess

import pytest
from cistern import _places

WORK = """
import os, torch
block = torch.arange(1 << 22, device="cuda", dtype=torch.float32)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    doubled = block * 2
    block.record_stream(side)
torch.cuda.current_stream().wait_stream(side)
del block
other = torch.full((1 << 22,), -1.0, device="cuda")
assert torch.equal(doubled, 2 * torch.arange(1 << 22, device="cuda", dtype=torch.float32))
static = torch.zeros(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    scratch = static * 3
    out = scratch + 1
    del scratch
for step in range(100):
    static.fill_(step)
    noise = torch.full((257, 1023), -1.0, device="cuda")
    graph.replay()
    assert (out == 3 * step + 1).all().item()
pinned = torch.arange(1 << 20, dtype=torch.float32).pin_memory()
assert torch.equal(pinned.to("cuda", non_blocking=True).cpu(), torch.arange(1 << 20, dtype=torch.float32))
del doubled, other, static, out, graph, noise, pinned
torch.cuda.synchronize()
torch.cuda.empty_cache()
with open("/proc/self/maps") as maps:
    paths = {line.split()[-1] for line in maps if "libcudart" in line}
print(torch.cuda.get_allocator_backend(), *sorted(map(os.path.realpath, paths)))
"""


@pytest.fixture(autouse=True)
def loads():
    if _places.command() is None:
        pytest.skip("the build has no command to ask")
    told = subprocess.run([_places.command(), "doctor", "--device", "cuda", "--json"], capture_output=True, text=True)
    runtime = json.loads(told.stdout)["backends"][0]["runtime"]
    if runtime is not None and runtime.endswith(", linked"):
        pytest.skip("this build links its runtime")


def test_the_runtime_that_pytorch_has_loaded_is_cisterns_too(run):
    status, out, err = run(WORK)
    assert status == 0, err
    backend, *files = out.split()
    assert backend == "cistern" and len(files) == 1, out


def test_a_runtime_of_another_version_stands_beside_pytorchs(run):
    other = os.environ.get("CISTERN_TEST_CUDART")
    if not other:
        pytest.skip("CISTERN_TEST_CUDART is not set")
    status, out, err = run(WORK, environment={"CISTERN_CUDA_LIBRARY": other})
    assert status == 0, err
    backend, *files = out.split()
    assert backend == "cistern" and len(files) == 2 and os.path.realpath(other) in files, out


def test_without_a_runtime_the_reason_is_told(run):
    source = "import cistern\ntry:\n    cistern.Allocator('cuda')\nexcept cistern.CisternError as e:\n    print(e)\n"
    status, out, err = run(source, mode=None, environment={"CISTERN_CUDA_LIBRARY": "/none/libcudart.so.13"})
    assert status == 0, err
    assert "CISTERN_CUDA_LIBRARY is /none/libcudart.so.13, which cannot be loaded" in out
