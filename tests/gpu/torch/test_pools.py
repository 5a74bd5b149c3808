"""torch.cuda.MemPool and use_mem_pool."""

import gc
import threading

import pytest
import torch

import cistern.torch

MIB = 1 << 20


def pool_bytes(pool):
    return sum(segment["total_size"] for segment in pool.snapshot())


def test_a_pools_memory_is_apart_and_goes_with_it():
    before = torch.cuda.memory_reserved()
    pool = torch.cuda.MemPool()
    assert pool.use_count() == 1
    with torch.cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        inside = torch.ones(8 * MIB, dtype=torch.uint8, device="cuda")
    outside = torch.ones(8 * MIB, dtype=torch.uint8, device="cuda")
    assert pool.use_count() == 1
    assert pool_bytes(pool) >= 8 * MIB
    addresses = [
        (segment["address"], segment["address"] + segment["total_size"])
        for segment in pool.snapshot()
    ]
    assert any(low <= inside.data_ptr() < high for low, high in addresses)
    assert not any(low <= outside.data_ptr() < high for low, high in addresses)
    del inside, outside, pool
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before


def test_other_threads_do_not_allocate_into_a_region():
    pool = torch.cuda.MemPool()
    taken = []
    with torch.cuda.use_mem_pool(pool):
        worker = threading.Thread(
            target=lambda: taken.append(torch.ones(4 * MIB, dtype=torch.uint8, device="cuda"))
        )
        worker.start()
        worker.join()
    assert pool_bytes(pool) == 0
    taken.clear()


def test_a_limit_refuses_what_goes_beyond_and_names_the_pool():
    pool = cistern.torch.MemPool(limit=64 * MIB)
    with torch.cuda.use_mem_pool(pool):
        kept = torch.ones(40 * MIB, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.OutOfMemoryError, match="may have 64.00 MiB in use"):
            torch.ones(30 * MIB, dtype=torch.uint8, device="cuda")
        small = torch.ones(20 * MIB, dtype=torch.uint8, device="cuda")
    other = torch.ones(200 * MIB, dtype=torch.uint8, device="cuda")
    assert kept[-1].item() == small[-1].item() == other[-1].item() == 1


def test_blocks_of_a_pool_that_does_not_split_are_one_handle_each():
    pool = torch.cuda.MemPool(no_split=True)
    with torch.cuda.use_mem_pool(pool):
        tensors = [torch.ones(size * MIB, dtype=torch.uint8, device="cuda") for size in (1, 5, 30)]
    starts = {segment["address"] for segment in pool.snapshot()}
    assert {tensor.data_ptr() for tensor in tensors} <= starts


def test_use_on_oom_lends_to_the_default_pool(limit):
    pool = torch.cuda.MemPool(use_on_oom=True)
    limit(256 * MIB)
    with torch.cuda.use_mem_pool(pool):
        lent = torch.empty(200 * MIB, dtype=torch.uint8, device="cuda")
    del lent
    block = torch.ones(190 * MIB, dtype=torch.uint8, device="cuda")
    assert block[-1].item() == 1


def test_a_pool_that_does_not_lend_gives_up_only_what_lies_wholly_free(limit):
    pool = torch.cuda.MemPool()
    limit(256 * MIB)
    with torch.cuda.use_mem_pool(pool):
        kept = torch.empty(200 * MIB, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.OutOfMemoryError):
            torch.ones(190 * MIB, dtype=torch.uint8, device="cuda")
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(190 * MIB, dtype=torch.uint8, device="cuda")
    del kept
    ones = torch.ones(190 * MIB, dtype=torch.uint8, device="cuda")
    assert ones.min().item() == 1  # a sum would make a copy eight times as large
    assert pool_bytes(pool) < 66 * MIB


def test_no_split_gives_each_block_a_segment():
    pool = torch.cuda.MemPool(no_split=True)
    with torch.cuda.use_mem_pool(pool):
        blocks = [torch.empty(3 * MIB, dtype=torch.uint8, device="cuda") for _ in range(3)]
    used = [s for s in pool.snapshot() if s["allocated_size"] > 0]
    assert len(used) == 3
    assert all(len(segment["blocks"]) == 1 for segment in used)
    del blocks


def test_a_graph_captures_into_a_mem_pool():
    pool = torch.cuda.MemPool()
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(MIB, device="cuda")
    with torch.cuda.graph(graph, pool=pool.id):
        y = x + 1
    for _ in range(100):
        graph.replay()
    assert y.sum().item() == 2 * MIB
    assert pool_bytes(pool) >= 4 * MIB
    del y, graph, pool
    gc.collect()


def test_one_region_on_cistern_under_pytorchs_own_caching(run):
    source = """
import torch, cistern.torch
pool = cistern.torch.MemPool()
with torch.cuda.use_mem_pool(pool):
    x = torch.full((1 << 20,), 3.0, device="cuda")
y = torch.full((1 << 20,), 4.0, device="cuda")
print((x + y).sum().item(), torch.cuda.get_allocator_backend(), len(pool.snapshot()))
"""
    status, out, err = run(source, mode=None)
    assert status == 0, err
    assert out.split() == [str(7.0 * (1 << 20)), "native", "1"]


def test_mem_pool_takes_no_other_allocator():
    with pytest.raises(ValueError, match="its allocator is Cistern"):
        cistern.torch.MemPool(allocator=None)


def test_empty_cache_waits_for_queued_work():
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    block = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    torch.cuda._sleep(200_000_000)
    block.fill_(1)
    del block
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before


def test_empty_cache_leaves_pools_that_are_in_use_alone():
    pools = [torch.cuda.MemPool() for _ in range(4)]

    def fill(pool):
        with torch.cuda.use_mem_pool(pool):
            block = torch.ones(4 * MIB, dtype=torch.uint8, device="cuda")
            del block
            torch.cuda.empty_cache()

    workers = [threading.Thread(target=fill, args=(pool,)) for pool in pools]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    torch.cuda.empty_cache()
    assert all(pool_bytes(pool) >= 4 * MIB for pool in pools)
