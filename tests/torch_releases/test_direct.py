"""The verbs that no function of Python's reaches: direct.cpp calls them."""

import ctypes

import pytest
import torch


def test_raw_blocks_and_their_segments(direct):
    direct("raw")


def test_the_largest_block_is_the_devices_memory_at_first(direct):
    largest = ctypes.c_size_t(0)
    free = torch.cuda.mem_get_info()[0]
    direct("cache_info", ctypes.byref(largest))
    assert largest.value >= free
    largest.value = 1
    direct("cache_info", ctypes.byref(largest))
    assert 1 <= largest.value < free


def test_segments_of_a_pool_are_numbered_as_they_came(direct):
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        held = [torch.empty(mib << 20, dtype=torch.uint8, device="cuda") for mib in (24, 48, 96)]
    direct("segments_in_order", *map(ctypes.c_ulonglong, pool.id))
    del held


def test_trackers_are_told(direct):
    count = ctypes.c_int()
    direct("traced", ctypes.byref(count))
    before = count.value
    torch.empty(1 << 20, device="cuda")
    direct("traced", ctypes.byref(count))
    assert count.value > before


def test_trackers_are_told_before_memory_goes(direct):
    direct("trackers_read_memory")


def test_a_stream_is_recorded_by_its_general_name(direct):
    direct("record_stream")


def test_a_device_out_of_reach_is_an_error(direct):
    with pytest.raises(RuntimeError, match="peer"):
        direct("peer_access")


def test_a_block_is_cloned(direct):
    direct("copy_data")


@pytest.mark.since(10)
def test_there_are_no_expandable_segments(direct):
    count = ctypes.c_size_t(1)
    direct("expandable_segments", ctypes.byref(count))
    assert count.value == 0


@pytest.mark.since(13)
def test_a_given_address_is_refused(direct):
    with pytest.raises(RuntimeError, match="cistern does not yet support allocateWithAddress"):
        direct("with_address")
