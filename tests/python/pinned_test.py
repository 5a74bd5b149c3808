"""Pinned host memory."""

import gc

import cistern
import pytest
from conftest import MIB


def test_a_block_comes_and_goes(allocator):
    pinned = allocator.pinned
    block = pinned.allocate(5000)
    assert block % 512 == 0 and pinned.block_size(block) == 5120
    stats = pinned.stats()
    assert stats.allocated_bytes == cistern.Stat(5120, 5120, 5120, 0)
    assert stats.requested_bytes.current == 5000 and stats.reserved_bytes.current == 2 * MIB
    assert stats.num_host_alloc == 1 and stats.host_bytes > 0
    assert allocator.stats().all.allocation.current == 0  # of the device
    pinned.free(block)
    pinned.free(0)
    assert pinned.allocate(0) == 0
    pinned.empty_cache()
    pinned.reset_peak_stats()
    assert pinned.stats().reserved_bytes.peak == 0


def test_a_block_that_a_stream_uses_serves_again_when_that_is_complete(allocator):
    with allocator.stream() as stream:
        block = allocator.pinned.allocate(MIB)
        allocator.pinned.record_stream(block, stream)
        allocator.pinned.free(block)
        stream.synchronize()
        assert allocator.pinned.allocate(MIB) == block


def test_a_buffer_is_read_and_written_and_frees_itself(allocator):
    with allocator.pinned.buffer(1000) as buffer, allocator.stream() as stream:
        view = buffer.view()
        view[:3] = b"abc"
        assert buffer.size == len(view) == 1000 and bytes(buffer.view()[:3]) == b"abc"
        buffer.record_stream(stream)
        del view
    assert allocator.pinned.stats().allocation.current == 0
    assert len(allocator.pinned.buffer(0).view()) == 0
    view = allocator.pinned.buffer(1000).view()
    gc.collect()
    assert allocator.pinned.stats().allocation.current == 1  # the view keeps it
    del view
    gc.collect()
    assert allocator.pinned.stats().allocation.current == 0


def test_limits_and_wrong_frees(allocator):
    pinned = allocator.pinned
    assert pinned.limit is None
    pinned.limit = 4 * MIB
    assert pinned.limit == 4 * MIB
    with pytest.raises(cistern.HostOutOfMemoryError, match="the limit is 4.00 MiB"):
        pinned.allocate(5 * MIB)
    with pytest.raises(cistern.InvalidPointerError):
        pinned.free(4096)
    with pytest.raises(TypeError, match="size must be an int"):
        pinned.allocate("1")
    pinned.limit = None
    assert pinned.limit is None
    pinned.free(pinned.allocate(5 * MIB))


def test_a_buffer_that_is_gone_gives_out_no_memory(allocator):
    freed, kept = allocator.pinned.buffer(MIB), allocator.pinned.buffer(MIB)
    freed.free()
    for use in (lambda: freed.address, freed.view, lambda: freed.record_stream(None)):
        with pytest.raises(cistern.InvalidHandleError, match="a pinned buffer that is gone"):
            use()
    allocator.destroy()
    with pytest.raises(cistern.InvalidHandleError, match="a pinned buffer of an allocator that is gone"):
        kept.view()


def test_what_was_destroyed_is_found_out(allocator):
    pinned = allocator.pinned
    allocator.destroy()
    with pytest.raises(cistern.InvalidHandleError):
        pinned.allocate(1)
