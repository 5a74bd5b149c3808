"""Blocks, streams, limits: what the verbs do."""

import cistern
import pytest
from conftest import MIB


def test_a_freed_block_is_reused_by_the_same_stream_at_once(allocator):
    block = allocator.allocate(24 * MIB)
    allocator.free(block)
    assert allocator.allocate(20 * MIB) == block


def test_blocks_are_512_byte_aligned_and_apart(allocator):
    blocks = sorted(allocator.allocate(1000) for _ in range(100))
    assert all(block % 512 == 0 for block in blocks)
    assert all(after - before >= 1000 for before, after in zip(blocks, blocks[1:]))


@pytest.mark.parametrize("alignment", [1, 4096, 1 << 21])
def test_a_block_is_aligned_as_asked_for_also_in_a_pool(allocator, alignment):
    with allocator.pool() as pool:
        for at in (allocator, pool):
            block = at.allocate(3 * MIB, alignment=alignment)
            assert block % alignment == 0
            assert allocator.block_size(block) == 3 * MIB
            allocator.free(block)


def test_an_alignment_that_is_none_is_refused(allocator):
    for wrong in (0, 3, 1 << 22):
        with pytest.raises(cistern.InvalidArgumentError, match=f"the alignment is {wrong}: "):
            allocator.allocate(64, alignment=wrong)


def test_nothing_is_null_and_null_is_freed_without_a_word(allocator):
    assert allocator.allocate(0) == 0
    allocator.free(0)
    with allocator.buffer(0) as buffer:
        assert (buffer.address, buffer.size) == (0, 0)


def test_a_block_has_a_size_and_a_segment(allocator):
    block = allocator.allocate(1000)
    base, size = allocator.base_allocation(block)
    assert allocator.block_size(block) == 1024
    assert base <= block and block + 1024 <= base + size


def test_beyond_the_device_is_out_of_memory_that_says_why(allocator):
    allocator.allocate(600 * MIB)
    with pytest.raises(cistern.OutOfMemoryError, match="600.00 MiB asked for.*") as caught:
        allocator.allocate(600 * MIB)
    assert isinstance(caught.value, MemoryError)
    assert caught.value.status is cistern.Status.OUT_OF_MEMORY
    assert allocator.stats().num_ooms == 1


def test_a_limit_is_kept_and_can_be_read(allocator):
    allocator.limit = 100 * MIB
    assert allocator.limit == 100 * MIB
    with pytest.raises(cistern.OutOfMemoryError):
        allocator.allocate(101 * MIB)
    allocator.set_memory_fraction(0.5)
    assert allocator.limit == 512 * MIB
    for wrong in (0, -1, 1.5, float("nan")):
        with pytest.raises(cistern.InvalidArgumentError, match="fraction"):
            allocator.set_memory_fraction(wrong)
    assert allocator.limit == 512 * MIB


def test_the_cache_is_given_back_when_asked(allocator):
    allocator.free(allocator.allocate(64 * MIB))
    assert allocator.memory_info() == (960 * MIB, 1024 * MIB)
    allocator.empty_cache()
    assert allocator.memory_info() == (1024 * MIB, 1024 * MIB)


def test_a_wrong_free_is_an_error_and_changes_nothing(allocator):
    block = allocator.allocate(24 * MIB)
    for wrong in (block + 512, 0xDEAD0000):
        with pytest.raises(cistern.InvalidPointerError, match=f"{wrong:#x}"):
            allocator.free(wrong)
    allocator.free(block)
    with pytest.raises(cistern.InvalidPointerError) as caught:
        allocator.free(block)
    assert isinstance(caught.value, ValueError)
    assert allocator.stats().num_misuses == 3
    assert allocator.stats().all.allocated_bytes.current == 0


def test_a_block_of_another_allocator_is_foreign_on_the_same_ordinal_too(allocator):
    with cistern.Allocator("sim") as other, other.stream() as stream:
        own, others = allocator.allocate(MIB), other.allocate(MIB, stream)
        with pytest.raises(cistern.InvalidPointerError, match="never gave it out"):
            allocator.free(others)
        with pytest.raises(cistern.InvalidPointerError, match="never gave it out"):
            other.free(own)
        with pytest.raises(cistern.InvalidArgumentError, match="not a live stream"):
            allocator.allocate(MIB, stream)
        assert allocator.block_size(own) == MIB
        other.free(others)


def test_a_block_of_a_destroyed_pool_is_reported_in_words(allocator):
    pool = allocator.pool()
    block = pool.allocate(24 * MIB)
    allocator.free(block)
    pool.destroy()
    allocator.empty_cache()
    with pytest.raises(cistern.InvalidPointerError, match="its pool or its stream is gone"):
        allocator.free(block)
    for segment in allocator.snapshot()["segments"]:
        assert int(segment["stream"], 0) < 1 << 63


def test_a_block_used_on_another_stream_waits_for_that():
    with cistern.Allocator.sim(gpu_lag_ns=10**9, conf="cross_stream_reuse:false") as allocator:
        with allocator.stream() as one, allocator.stream() as other:
            block = allocator.allocate(24 * MIB, one)
            allocator.record_stream(block, other)
            allocator.free(block)
            other.synchronize()
            assert allocator.allocate(24 * MIB, one) == block


def test_a_stream_of_another_library_is_taken(allocator):
    class Torch:
        cuda_stream = 0

    class CuPy:
        ptr = 0

    with allocator.stream() as stream:
        class Protocol:
            def __cuda_stream__(self):
                return 0, stream.handle

        for like in (None, 0, Torch(), CuPy()):
            allocator.free(allocator.allocate(100, like))
        block = allocator.allocate(MIB, Protocol())
        (segment,) = [s for s in allocator.snapshot()["segments"] if int(s["stream"], 0)]
        assert segment["stream"] == hex(stream.handle)
        allocator.free(block)


def test_the_per_thread_default_stream_is_refused(allocator):
    block = allocator.allocate(MIB)
    for verb in (lambda: allocator.allocate(512, 2), lambda: allocator.record_stream(block, 2),
                 lambda: allocator.forget_stream(2),
                 lambda: allocator.pinned.record_stream(allocator.pinned.allocate(512), 2)):
        with pytest.raises(cistern.InvalidArgumentError, match="per-thread default stream"):
            verb()
    allocator.free(block)


def test_a_stream_that_is_not_there_is_refused(allocator):
    with pytest.raises(cistern.InvalidArgumentError, match="0x1234"):
        allocator.allocate(100, 0x1234)
    with pytest.raises(cistern.InvalidArgumentError, match="default"):
        allocator.forget_stream(None)


def test_a_buffer_frees_itself(allocator):
    with allocator.buffer(MIB) as buffer:
        assert buffer.size >= MIB
        assert allocator.stats().all.allocation.current == 1
    assert allocator.stats().all.allocation.current == 0
    buffer.free()
    with pytest.raises(cistern.InvalidHandleError):
        buffer.size


def test_options_are_text_or_a_mapping_and_can_be_made_again():
    for conf in ("limit:1GiB,recycle:off,cross_stream_reuse:false",
                 {"limit": 1 << 30, "recycle": "off", "cross_stream_reuse": False}):
        with cistern.Allocator("sim", conf=conf) as allocator:
            assert allocator.limit == 1 << 30
            with cistern.Allocator("sim", conf=allocator.options) as again:
                assert again.options == allocator.options != ""


def test_options_come_from_the_environment_unless_given(monkeypatch):
    monkeypatch.setenv("CISTERN_CONF", "limit:64MiB")
    with cistern.Allocator("sim") as from_environment, cistern.Allocator("sim", conf="") as plain:
        assert from_environment.limit == 64 * MIB
        assert plain.options == ""


def test_the_shared_allocator_is_one_and_stays(run):
    run("""
import cistern
shared = cistern.default()
assert cistern.default(0) is shared
with shared:
    block = shared.allocate(1000)
shared.buffer(1000)
assert shared.stats().all.allocation.current == 1
try:
    shared.destroy()
except cistern.InvalidStateError as error:
    assert "device 0" in str(error)
else:
    raise SystemExit("destroyed")
shared.free(block)
try:
    cistern.default(64)
except cistern.InvalidArgumentError as error:
    assert "64" in str(error)
""", CISTERN_BACKEND="sim")
