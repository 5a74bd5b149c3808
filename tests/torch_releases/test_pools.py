"""torch.cuda.MemPool and use_mem_pool; checkpoints."""

import gc

import pytest
import torch

import cistern.torch
from cistern.torch import _plugin

MIB = 1 << 20


def block(bytes_wanted):
    return torch.empty(bytes_wanted, dtype=torch.uint8, device="cuda")


def bytes_of(pool):
    return sum(segment["total_size"] for segment in pool.snapshot())


def limit_to(more):
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + more) / total)


def test_a_pool_has_memory_and_users_of_its_own():
    before = torch.cuda.memory_reserved()
    pool = torch.cuda.MemPool()
    assert pool.use_count() == 1
    with torch.cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        inside = block(8 * MIB)
    outside = block(8 * MIB)
    assert pool.use_count() == 1
    assert bytes_of(pool) >= 8 * MIB
    ranges = [(s["address"], s["address"] + s["total_size"]) for s in pool.snapshot()]
    assert any(low <= inside.data_ptr() < high for low, high in ranges)
    assert not any(low <= outside.data_ptr() < high for low, high in ranges)
    del inside, outside, pool
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before


def test_a_region_on_cistern_is_a_pool_of_its_own_where_all_is():
    pool = cistern.torch.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = block(8 * MIB)
    assert bytes_of(pool) < 40 * MIB
    del inside


def test_a_pool_whose_allocator_is_cistern_does_not_ask_for_ever():
    """The plug-in's allocations are those of the thread's pool, so its segments would be, too."""
    before = torch.cuda.memory_reserved()
    pool = torch.cuda.MemPool(allocator=_plugin.allocator().allocator())
    with torch.cuda.use_mem_pool(pool), pytest.raises(RuntimeError):
        block(8 * MIB)
    del pool
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before


def test_use_on_oom_lends():
    pool = torch.cuda.MemPool(use_on_oom=True)
    limit_to(256 * MIB)
    with torch.cuda.use_mem_pool(pool):
        lent = block(200 * MIB)
    del lent
    assert block(190 * MIB).numel() == 190 * MIB


def test_a_pool_that_does_not_lend_keeps_what_it_holds():
    pool = torch.cuda.MemPool()
    limit_to(256 * MIB)
    with torch.cuda.use_mem_pool(pool):
        kept = block(200 * MIB)
    with pytest.raises(torch.OutOfMemoryError):
        block(190 * MIB)
    del kept


@pytest.mark.since(10)
def test_no_split_gives_each_block_a_segment():
    pool = torch.cuda.MemPool(no_split=True)
    with torch.cuda.use_mem_pool(pool):
        held = [block(4 * MIB) for _ in range(3)]
    assert sorted(s["address"] for s in pool.snapshot()) == sorted(b.data_ptr() for b in held)


def test_regions_of_a_thread_and_of_all_threads():
    pool = torch.cuda.graph_pool_handle()
    for begin in (torch._C._cuda_beginAllocateCurrentThreadToPool, torch._C._cuda_beginAllocateToPool):
        begin(0, pool)
        held = block(4 * MIB)
        torch._C._cuda_endAllocateToPool(0, pool)
        segments = torch.cuda.memory_snapshot(pool)
        assert any(s["address"] <= held.data_ptr() < s["address"] + s["total_size"] for s in segments)
        del held
        torch._C._cuda_releasePool(0, pool)


@pytest.mark.parametrize("allocates", [True, False])
def test_a_pool_that_is_open_is_not_opened_again(allocates):
    outer, inner = torch.cuda.MemPool(), torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(outer):
        held = [block(4 * MIB)] if allocates else []
        with torch.cuda.use_mem_pool(inner):
            with pytest.raises(RuntimeError, match="already recording to mempool_id"):
                with torch.cuda.use_mem_pool(outer):
                    pass
            between = block(4 * MIB)
        held.append(block(4 * MIB))
    live = torch._C._cuda_checkPoolLiveAllocations
    assert live(0, outer.id, {each.data_ptr() for each in held}) and live(0, inner.id, {between.data_ptr()})
    assert outer.use_count() == inner.use_count() == 1


def test_live_blocks_of_a_pool_are_known():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        held = block(4 * MIB)
    live = torch._C._cuda_checkPoolLiveAllocations
    assert live(0, pool.id, {held.data_ptr()})
    assert not live(0, pool.id, set())


def test_a_checkpoint_brings_blocks_back():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        held = block(4 * MIB)
    address = held.data_ptr()
    state = torch._C._cuda_getCheckpointState(0, pool.id)
    del held
    assert torch._C._cuda_checkPoolLiveAllocations(0, pool.id, set())
    torch._C._cuda_setCheckpointPoolState(0, state, [], [])
    assert torch._C._cuda_checkPoolLiveAllocations(0, pool.id, {address})
    torch.cuda.caching_allocator_delete(address)


def test_a_pools_cache_goes_with_the_pool():
    before = torch.cuda.memory_reserved()
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        held = block(64 * MIB)
    del held
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert bytes_of(pool) >= 64 * MIB
    del pool
    assert torch.cuda.memory_reserved() <= before
