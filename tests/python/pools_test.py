"""Pools, their scopes, and captures."""

import threading

import cistern
import pytest
from conftest import MIB


def pools_of(allocator):
    """The pool of each allocated block, by address."""
    return {int(block["address"], 0): tuple(segment["pool"])
            for segment in allocator.snapshot()["segments"] for block in segment["blocks"]
            if block["state"] == "allocated"}


def test_a_pools_memory_is_apart(allocator):
    with allocator.pool() as pool:
        own, other = pool.allocate(24 * MIB), allocator.allocate(24 * MIB)
        assert pools_of(allocator) == {own: pool.id, other: (0, 0)}
        allocator.free(own)
        assert allocator.allocate(24 * MIB) != own
        pool.empty_cache()


def test_a_scope_catches_what_its_thread_allocates(allocator):
    found = {}

    def elsewhere():
        found["block"] = allocator.allocate(MIB)

    with allocator.pool() as pool, allocator.pool() as inner:
        with pool.scope() as scoped:
            assert scoped is pool
            one = allocator.allocate(MIB)
            with inner.scope():
                two = allocator.allocate(MIB)
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
            with pytest.raises(cistern.InvalidStateError), pool.scope():
                pass
            assert pool.use_count == 2
        after = allocator.allocate(MIB)
        assert pool.use_count == 1
        assert pools_of(allocator) == {one: pool.id, two: inner.id, found["block"]: (0, 0),
                                       after: (0, 0)}


def test_a_scope_ends_with_an_exception(allocator):
    with allocator.pool() as pool:
        with pytest.raises(KeyError):
            with pool.scope():
                raise KeyError
        assert pools_of(allocator) == {}
        block = allocator.allocate(MIB)
        assert pools_of(allocator) == {block: (0, 0)}


def test_a_scope_that_another_thread_tries_to_leave_is_left_by_its_own(allocator):
    with allocator.pool() as pool:
        scope = pool.scope()
        scope.__enter__()
        failures = []

        def elsewhere():
            try:
                scope.__exit__(None, None, None)
            except cistern.InvalidStateError as error:
                failures.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert len(failures) == 1
        block = allocator.allocate(MIB)
        assert pools_of(allocator)[block] == pool.id
        scope.__exit__(None, None, None)
        allocator.free(block)
        assert pool.use_count == 1


def test_a_scope_of_a_stream_catches_what_any_thread_allocates_there(allocator):
    with allocator.pool() as pool, allocator.stream() as stream:
        with pool.stream_scope(stream):
            blocks = []
            thread = threading.Thread(target=lambda: blocks.append(allocator.allocate(MIB, stream)))
            thread.start()
            thread.join()
            other = allocator.allocate(MIB)
            with pytest.raises(cistern.InvalidStateError), pool.stream_scope(stream):
                pass
        assert pools_of(allocator) == {blocks[0]: pool.id, other: (0, 0)}


def test_use_on_oom_lends_and_no_split_has_a_segment_for_each():
    with cistern.Allocator.sim(capacity=256 * MIB, conf="backing:segments") as allocator:
        with allocator.pool(use_on_oom=True) as pool:
            pool_block = pool.allocate(200 * MIB)
            allocator.free(pool_block)
            assert allocator.allocate(200 * MIB) != 0
        with allocator.pool(no_split=True) as pool:
            bases = {allocator.base_allocation(pool.allocate(2 * MIB))[0] for _ in range(3)}
            assert len(bases) == 3


def test_a_capture_keeps_its_memory_until_it_is_released(allocator):
    with allocator.stream() as stream:
        with stream.recording(), allocator.capture(stream) as memory:
            scratch = allocator.allocate(24 * MIB, stream)
            allocator.free(scratch)
            assert allocator.allocate(24 * MIB, stream) == scratch
            assert repr(memory).startswith("<cistern.Capture into pool {")
        assert pools_of(allocator) == {scratch: memory.pool_id}
        memory.launching(stream)
        allocator.free(scratch)
        assert allocator.allocate(24 * MIB, stream) != scratch
        memory.release()
        assert repr(memory) == "<cistern.Capture, destroyed>"
        memory.release()
        with pytest.raises(cistern.InvalidHandleError):
            memory.launching(stream)


def test_a_capture_goes_into_a_pool_that_is_given(allocator):
    with allocator.stream() as stream, allocator.pool() as pool:
        with stream.recording(), allocator.capture(stream, pool) as memory:
            assert memory.pool_id == pool.id
            assert pool.use_count == 2
            with pytest.raises(cistern.InvalidStateError):
                memory.launching(stream)
        with pytest.raises(cistern.InvalidStateError):
            memory.end()
        memory.release()
        assert pool.use_count == 1


def test_a_stream_that_is_not_captured_is_refused(allocator):
    with allocator.stream() as stream:
        with pytest.raises(cistern.InvalidArgumentError, match="captured"):
            allocator.capture(stream)


def test_a_pool_lies_in_host_memory(allocator):
    total = allocator.memory_info().total
    with allocator.stream() as stream, allocator.pool(location=cistern.Location.HOST) as pool:
        block = pool.allocate(2 * total, stream)
        assert allocator.stats().all.reserved_bytes.current == 0
        where = {segment["location"] for segment in allocator.snapshot()["segments"]}
        assert where == {"host"} and allocator.location_of(block) is cistern.Location.HOST
        with allocator.buffer(MIB, stream) as buffer:
            assert allocator.location_of(buffer.address) is cistern.Location.DEVICE
        with pytest.raises(cistern.InvalidStateError, match="host memory"):
            pool.sleep()
        allocator.free(block)
        with pytest.raises(cistern.InvalidPointerError, match="locationOf of"):
            allocator.location_of(block)
    with pytest.raises(cistern.InvalidStateError, match="host memory"):
        allocator.pool(location=cistern.Location.HOST, use_on_oom=True)
    for location in (2, "host", None):
        with pytest.raises(cistern.InvalidArgumentError, match="location is .*must be cistern.Location.DEVICE or .HOST"):
            allocator.pool(location=location)


def test_pools_sleep_and_wake(allocator):
    with allocator.stream() as stream, allocator.pool() as pool, allocator.pool() as other:
        block = pool.allocate(24 * MIB, stream)
        dropped = pool.allocate(24 * MIB, stream)
        pool.set_contents(dropped, cistern.Contents.DROP)
        with pytest.raises(cistern.InvalidPointerError, match="never gave it out"):
            pool.set_contents(512, cistern.Contents.DROP)
        report = cistern.sleep(pool, other, after=stream)
        assert (pool.asleep, other.asleep) == (True, True)
        assert report.released >= 48 * MIB and report.saved == 24 * MIB and report.stayed == 0
        with pytest.raises(cistern.InvalidStateError, match="asleep"):
            pool.allocate(512, stream)
        assert len(pool.saved(block, 100)) == 100 and pool.saved(dropped, 100) is None
        allocator.free(dropped)
        woken = cistern.wake(pool, other, keep_host_memory=False)
        assert woken.restored == 24 * MIB and woken.pinned == 0 and woken.mapped < report.released
        assert not pool.asleep
        assert pool.sleep(contents=cistern.Contents.ZERO).saved == 0
        pool.wake()
        allocator.free(block)
    with pytest.raises(TypeError, match="at least one pool"):
        cistern.sleep()
    with pytest.raises(TypeError, match="a pool is needed, not str"):
        cistern.wake("pool")


def test_a_limit_of_a_pool_is_said_by_its_name(allocator):
    with allocator.pool(limit=8 * MIB) as pool:
        block = pool.allocate(6 * MIB)
        with pytest.raises(cistern.OutOfMemoryError, match=rf"{pool.id.uid}}} may have 8.00 MiB in use"):
            pool.allocate(3 * MIB)
        pool.set_limit(None)
        allocator.free(pool.allocate(30 * MIB))
        allocator.free(block)
        with pytest.raises(cistern.InvalidArgumentError):
            pool.set_limit(-1)


def test_one_handle_gives_each_block_a_segment(allocator):
    with allocator.pool(one_handle=True) as pool:
        blocks = [pool.allocate(size) for size in (1000, 3 * MIB)]
        assert [allocator.base_allocation(block)[0] for block in blocks] == blocks
        for block in blocks:
            allocator.free(block)


def test_held_memory_does_not_go_back(allocator):
    block = allocator.allocate(24 * MIB)
    with allocator.hold(block, 24 * MIB) as hold:
        assert "Hold" in repr(hold)
        allocator.free(block)
        allocator.empty_cache()
        assert allocator.stats().all.reserved_bytes.current >= 24 * MIB
        assert allocator.allocate(24 * MIB) == block
        allocator.free(block)
    allocator.empty_cache()
    assert allocator.stats().all.reserved_bytes.current == 0
    with pytest.raises(cistern.InvalidArgumentError, match="none lies at"):
        allocator.hold(block, MIB)


def test_a_held_pool_stays_with_its_memory(allocator):
    pool = allocator.pool()
    allocator.free(pool.allocate(24 * MIB))
    hold = pool.hold()
    pool.empty_cache()
    assert pool.use_count == 2
    pool.destroy()
    allocator.empty_cache()
    assert allocator.stats().all.reserved_bytes.current >= 24 * MIB
    hold.release()
    hold.release()
    allocator.empty_cache()
    assert allocator.stats().all.reserved_bytes.current == 0
