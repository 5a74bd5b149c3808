"""Pinned host memory."""

import pytest
import torch

KIB = 1 << 10
memory = torch.cuda.memory


def figures():
    return memory.host_memory_stats()


def test_pinned_memory_is_pinned_and_counted():
    torch._C._host_emptyCache()
    memory.reset_peak_host_memory_stats()
    memory.reset_accumulated_host_memory_stats()
    before = figures()
    held = torch.empty(64 * KIB, dtype=torch.uint8, pin_memory=True)
    assert held.is_pinned() and not torch.empty(1).is_pinned()
    name = "active_bytes.current" if "active_bytes.current" in before else "allocated_bytes.current"
    assert figures()[name] - before[name] == 64 * KIB
    del held
    assert figures()[name] == before[name]
    assert figures()[name.replace("current", "peak")] == before[name] + 64 * KIB


def test_copies_that_do_not_wait_keep_their_memory():
    source = torch.arange(16 * KIB, dtype=torch.int32).pin_memory()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        target = source.to("cuda", non_blocking=True)
    del source
    torch.cuda.synchronize()
    assert torch.equal(target.cpu(), torch.arange(16 * KIB, dtype=torch.int32))


def test_free_pinned_memory_is_given_back():
    torch.empty(1 << 24, dtype=torch.uint8, pin_memory=True)
    before = figures()["num_host_free"]
    torch._C._host_emptyCache()
    assert figures()["num_host_free"] > before


@pytest.mark.since(12)
def test_the_accelerator_empties_the_host_cache():
    torch.empty(1 << 24, dtype=torch.uint8, pin_memory=True)
    before = figures()["num_host_free"]
    torch.accelerator.memory.empty_host_cache()
    assert figures()["num_host_free"] > before


def test_verbs_that_python_does_not_reach(direct):
    direct("pinned")


@pytest.mark.since(11)
def test_a_pool_of_pinned_memory(direct):
    direct("pinned_pool")
