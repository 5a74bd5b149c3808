"""torch.accelerator's functions on memory: PyTorch routes them to the allocator that is registered for CUDA."""

import pytest
import torch

MIB = 1 << 20
accelerator = torch.accelerator


def of_release(name):
    """A function that the installed release may be without."""
    function = getattr(accelerator, name, None) or getattr(accelerator.memory, name, None)
    return function or pytest.skip(f"torch.accelerator has no {name} before a later release")


def tensor(size):
    return torch.empty(size, dtype=torch.uint8, device=accelerator.current_accelerator())


@pytest.fixture(autouse=True)
def begun():
    """Before CUDA is initialised the functions do nothing."""
    torch.cuda.init()


def test_the_statistics_are_those_of_torch_cuda():
    block = tensor(10 * MIB)
    theirs, cudas = accelerator.memory_stats(), torch.cuda.memory_stats()
    common = theirs.keys() & cudas.keys()
    assert "allocated_bytes.all.current" in common and "num_device_alloc" in common
    assert {key: theirs[key] for key in common} == {key: cudas[key] for key in common}
    assert accelerator.memory_allocated() == torch.cuda.memory_allocated() >= 10 * MIB
    assert accelerator.memory_reserved() == torch.cuda.memory_reserved() >= 10 * MIB
    assert accelerator.memory_stats(0) == accelerator.memory_stats(torch.device("cuda", 0)) == theirs
    del block


def test_peaks_follow_and_are_reset():
    accelerator.reset_peak_memory_stats()
    before = accelerator.memory_allocated()
    block = tensor(20 * MIB)
    del block
    assert accelerator.memory_allocated() == before
    assert accelerator.max_memory_allocated() == torch.cuda.max_memory_allocated() == before + 20 * MIB
    assert accelerator.max_memory_reserved() == torch.cuda.max_memory_reserved() >= before + 20 * MIB
    accelerator.reset_peak_memory_stats()
    assert accelerator.max_memory_allocated() == before


def test_accumulated_counts_are_reset():
    accelerator.reset_accumulated_memory_stats()
    block = tensor(3 * MIB)
    stats = accelerator.memory_stats()
    assert (stats["allocation.all.allocated"], stats["allocation.all.freed"]) == (1, 0)
    del block
    assert accelerator.memory_stats()["allocation.all.freed"] == 1
    accelerator.reset_accumulated_memory_stats()
    stats = accelerator.memory_stats()
    assert (stats["allocation.all.allocated"], stats["allocation.all.freed"]) == (0, 0)


def test_the_cache_is_emptied():
    accelerator.empty_cache()
    before = accelerator.memory_reserved()
    block = tensor(200 * MIB)
    del block
    assert accelerator.memory_reserved() >= before + 200 * MIB
    torch.cuda.synchronize()
    accelerator.empty_cache()
    assert accelerator.memory_reserved() <= before


def test_free_and_total_memory_are_the_devices():
    free, total = of_release("get_memory_info")()
    assert total == torch.cuda.mem_get_info()[1]
    assert 0 < free < total


def test_the_cache_of_pinned_memory_is_emptied():
    empty = of_release("empty_host_cache")
    before = torch.cuda.host_memory_stats()["allocated_bytes.current"]
    block = torch.empty(8 * MIB, dtype=torch.uint8, pin_memory=True)
    assert torch.cuda.host_memory_stats()["allocated_bytes.current"] >= 8 * MIB
    del block
    empty()
    assert torch.cuda.host_memory_stats()["allocated_bytes.current"] <= before


def test_a_graph_keeps_its_memory():
    graph = of_release("Graph")()
    source = torch.arange(1024, device="cuda")
    stream = torch.Stream(device="cuda")
    stream.wait_stream(torch.accelerator.current_stream())
    with stream, graph:
        doubled = source * 2
    source += 1
    torch.accelerator.synchronize()
    graph.replay()
    torch.accelerator.synchronize()
    assert torch.equal(doubled, source * 2)
    others = [torch.zeros(1024, dtype=doubled.dtype, device="cuda") for _ in range(8)]
    assert all(other.data_ptr() != doubled.data_ptr() for other in others)
    graph.reset()


def test_a_snapshot_has_the_block():
    take = of_release("_snapshot")
    block = tensor(5 * MIB)
    blocks = [each for segment in take()["segments"] for each in segment["blocks"]]
    assert [each["requested_size"] for each in blocks if each["address"] == block.data_ptr()] == [5 * MIB]
