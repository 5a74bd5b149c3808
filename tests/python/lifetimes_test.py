"""What ends when: destroyed by the program, collected, in cycles, in any order."""

import copy
import gc
import pickle
import weakref

import cistern
import pytest
from conftest import MIB


def test_what_was_destroyed_cannot_be_used(allocator):
    other = cistern.Allocator("sim")
    pool, stream, buffer = other.pool(), other.stream(), other.buffer(1000)
    with pytest.raises(cistern.InvalidStateError, match="1 pools"):
        other.destroy()
    assert other.allocate(1000) != 0  # as if nobody had tried
    pool.destroy()
    other.destroy()
    assert repr(other) == "<cistern.Allocator on sim device 0, destroyed>"
    for use in (lambda: other.allocate(1), lambda: other.free(512), other.stats, other.stats_dict,
                other.snapshot, other.empty_cache, other.pool, other.stream, other.memory_info,
                other.reset_peak_stats, lambda: other.options, lambda: other.limit,
                lambda: other.buffer(1), lambda: other.block_size(512),
                lambda: other.base_allocation(512), lambda: other.location_of(512), lambda: other.record_stream(512, None),
                lambda: other.forget_stream(1), lambda: other.set_memory_fraction(0.5),
                lambda: other.capture(stream), lambda: pool.allocate(1), lambda: pool.id,
                lambda: pool.use_count, pool.empty_cache, lambda: pool.scope().__enter__(),
                lambda: pool.stream_scope(0).__enter__(), stream.synchronize,
                lambda: buffer.size, lambda: buffer.record_stream(0)):
        with pytest.raises(cistern.InvalidHandleError, match="that was destroyed|that was released|that is gone"):
            use()
    for end in (other.destroy, pool.destroy, stream.destroy, buffer.free):
        end()  # a second time is nothing


def test_what_nobody_refers_to_is_destroyed(allocator):
    allocator.buffer(MIB)
    assert allocator.stats().all.allocation.current == 0
    allocator.pool().allocate(24 * MIB)
    allocator.stream()
    with pytest.raises(cistern.InvalidArgumentError, match="not alive|stream"):
        allocator.allocate(1, allocator.stream().handle)


def test_an_allocator_lives_as_long_as_what_belongs_to_it():
    pool = cistern.Allocator("sim").pool()
    buffer = pool.buffer(1000)
    assert buffer.size == 1024
    del pool
    assert buffer.size == 1024


def test_an_allocator_goes_when_nothing_refers_to_it():
    ended = []
    allocator = cistern.Allocator("sim")
    pool = allocator.pool()
    weakref.finalize(allocator._owned, ended.append, "allocator")
    weakref.finalize(pool._owned, ended.append, "pool")
    handle = allocator._owned.raw
    del allocator
    assert ended == []
    del pool
    assert ended == ["pool", "allocator"]
    from cistern._native import lib
    assert lib.cistern_empty_cache(handle) == cistern.Status.INVALID_HANDLE


@pytest.mark.parametrize("order", [1, -1])
def test_cycles_are_collected_whatever_the_order(order):
    from cistern._native import lib
    handles = []
    for _ in range(50):
        allocator = cistern.Allocator("sim")
        handles.append(allocator._owned.raw)
        pool = allocator.pool()
        with allocator.stream() as stream, stream.recording():
            capture = allocator.capture(stream, pool)
        things = [allocator, pool, capture, pool.buffer(1000), allocator.stream()][::order]
        for thing, following in zip(things, things[1:] + things[:1]):
            thing.__dict__["next"] = following
    del allocator, pool, capture, stream, things, thing, following
    gc.collect()
    assert all(lib.cistern_empty_cache(handle) == cistern.Status.INVALID_HANDLE for handle in handles)


def test_an_exception_is_not_hidden_by_what_it_left_open():
    with pytest.raises(KeyError, match="mine"):
        with cistern.Allocator("sim") as allocator:
            pool = allocator.pool()
            raise KeyError("mine")
    pool.destroy()
    with pytest.raises(cistern.InvalidStateError, match="still has 1 pools"):
        with cistern.Allocator("sim") as allocator:
            pool = allocator.pool()


def test_a_buffer_whose_block_somebody_else_freed_frees_no_other(allocator):
    buffer = allocator.buffer(24 * MIB)
    address = buffer.address
    allocator.free(address)
    with pytest.raises(cistern.InvalidPointerError):
        buffer.free()
    again = allocator.allocate(24 * MIB)
    assert again == address
    for use in (lambda: buffer.address, lambda: buffer.size,
                lambda: buffer.record_stream(allocator.stream())):
        with pytest.raises(cistern.InvalidHandleError, match="a buffer that is gone has no address"):
            use()
    del buffer
    assert allocator.block_size(again) == 24 * MIB


@pytest.mark.parametrize("memory", [lambda allocator: allocator, lambda allocator: allocator.pinned])
@pytest.mark.parametrize("ends", ["free", "del", "with"])
def test_a_buffer_whose_address_was_freed_does_not_free_what_lies_there_later(allocator, memory, ends):
    of = memory(allocator)
    buffer = of.buffer(24 * MIB)
    address = buffer.address
    of.free(address)
    again = of.allocate(24 * MIB)
    assert again == address
    with pytest.raises(cistern.InvalidHandleError, match="has no address"):
        _ = buffer.address
    if ends == "free":
        with pytest.raises(cistern.InvalidPointerError, match=f"{address:#x} was freed by its address"):
            buffer.free()
        buffer.free()
    elif ends == "with":
        with pytest.raises(cistern.InvalidPointerError), buffer:
            pass
    del buffer
    assert of.block_size(again) >= 24 * MIB
    of.free(again)


def test_the_same_where_a_new_buffer_or_one_of_a_pool_lies_there(allocator):
    first = allocator.buffer(24 * MIB)
    address = first.address
    allocator.free(address)
    second = allocator.buffer(24 * MIB)
    del first
    assert second.address == address and second.size == 24 * MIB
    second.free()
    with allocator.pool() as pool:
        buffer = pool.buffer(24 * MIB)
        address = buffer.address
        allocator.free(address)
        again = pool.allocate(24 * MIB)
        assert again == address
        del buffer
        assert allocator.block_size(again) == 24 * MIB
        allocator.free(again)


def test_an_address_that_cannot_be_freed_stays_the_buffers(allocator):
    buffer = allocator.buffer(24 * MIB)
    for wrong in (buffer.address + 512, 0xDEAD0000):
        with pytest.raises(cistern.InvalidPointerError):
            allocator.free(wrong)
    assert buffer.size == 24 * MIB
    buffer.free()
    assert allocator.stats().all.allocated_bytes.current == 0


def test_a_pool_with_an_open_scope_stays_and_can_be_destroyed_later(allocator):
    pool = allocator.pool()
    with pool.scope():
        with pytest.raises(cistern.InvalidStateError, match="scope"):
            pool.destroy()
        assert "destroyed" not in repr(pool)
    pool.destroy()
    assert repr(pool) == "<cistern.Pool, destroyed>"


def test_blocks_outlive_their_pool(allocator):
    with allocator.pool() as pool:
        block = pool.allocate(24 * MIB)
    assert allocator.block_size(block) == 24 * MIB
    allocator.free(block)
    assert allocator.stats().all.allocated_bytes.current == 0


def test_nothing_is_copied_or_pickled(allocator):
    things = [allocator, allocator.pool(), allocator.stream(), allocator.buffer(1000)]
    for thing in things:
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="can neither be copied nor pickled"):
                way(thing)


def test_a_buffer_of_a_destroyed_allocator_is_nothing(allocator):
    other = cistern.Allocator("sim")
    buffer, stream = other.buffer(1000), other.stream()
    other.destroy()
    del buffer, stream, other
    assert allocator.stats().num_misuses == 0


def test_a_stream_that_is_gone_has_no_handle(allocator):
    stream = allocator.stream()
    stream.destroy()
    for use in (lambda: stream.handle, stream.__cuda_stream__, lambda: allocator.allocate(1, stream)):
        with pytest.raises(cistern.InvalidHandleError, match="a stream that is gone has no handle"):
            use()


def test_auto_says_what_it_is():
    with cistern.Allocator("auto") as allocator:
        assert allocator.backend in ("cuda", "hip", "sim")
        assert repr(allocator).startswith(f"<cistern.Allocator on {allocator.backend} device 0: ")


def test_reprs_say_what_there_is(allocator):
    buffer, pool, stream = allocator.buffer(1000), allocator.pool(), allocator.stream()
    assert repr(allocator) == ("<cistern.Allocator on sim device 0: 1,024 bytes allocated, "
                               "2,097,152 reserved>")
    assert repr(buffer) == f"<cistern.Buffer at {buffer.address:#x}>"
    assert repr(pool) == f"<cistern.Pool {{{pool.id.uuid}, {pool.id.uid}}}>"
    assert repr(stream) == f"<cistern.Stream {stream.handle:#x}>"
    stream.destroy(), pool.destroy(), buffer.free()
    assert all("destroyed" in repr(thing) for thing in (stream, pool, buffer))
