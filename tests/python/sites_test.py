"""An error about a wrong pointer names the line of Python that freed the block, and not ctypes."""

import gc
import re
import sys

import cistern
import pytest
from cistern import _sites
from cistern._native import lib

HERE = re.escape(__file__)
CTYPES = re.compile(r"ffi|ctypes", re.I)


def line():
    return sys._getframe(1).f_lineno


def said(call, *arguments):
    with pytest.raises(cistern.InvalidPointerError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert not CTYPES.search(text), text
    return text


def test_a_second_free_names_the_line_of_the_first(allocator):
    block = allocator.allocate(4096)

    def first():
        allocator.free(block); return line()  # noqa: E702

    freed = first()
    text = said(allocator.free, block)
    assert re.search(rf", freed by {HERE}:{freed} \(first\) on thread \d+$", text), text
    assert said(allocator.free, block) == text  # the second changes nothing
    for call in (allocator.block_size, allocator.base_allocation, allocator.location_of):
        assert f":{freed} (first)" in said(call, block)
    assert f":{freed} (first)" in said(allocator.record_stream, block, None)


def test_the_last_free_counts_of_a_block_that_is_given_out_again(allocator):
    for _ in range(3):
        block = allocator.allocate(4096)
        allocator.free(block); freed = line()  # noqa: E702
    block = allocator.allocate(4096)
    allocator.free(block); freed = line()  # noqa: E702
    assert f":{freed} (" in said(allocator.free, block)


def test_a_buffers_end_is_a_line_too(allocator):
    buffer = allocator.buffer(4096)
    address = buffer.address
    buffer.free(); freed = line()  # noqa: E702
    assert f"{__file__}:{freed} (" in said(allocator.free, address)
    buffer = allocator.buffer(4096)
    address = buffer.address
    del buffer; freed = line()  # noqa: E702
    gc.collect()
    assert f"{__file__}:{freed} (" in said(allocator.free, address)
    with allocator.pool() as pool:
        inside = pool.buffer(4096)
        allocator.free(inside.address); freed = line()  # noqa: E702
        assert f"was freed by its address by {__file__}:{freed} (" in said(inside.free)


def test_pinned_memory_has_the_line(allocator):
    block = allocator.pinned.allocate(4096)
    allocator.pinned.free(block); freed = line()  # noqa: E702
    for call in (allocator.pinned.free, allocator.pinned.block_size):
        text = said(call, block)
        assert re.search(rf"free, freed last from Python by {HERE}:{freed} \(", text), text
    assert f":{freed} (" in said(allocator.pinned.record_stream, block, None)


def test_a_free_that_the_library_has_forgotten_is_still_named():
    with cistern.Allocator.sim() as allocator:
        blocks = [allocator.allocate(4096) for _ in range(100)]
        for block in blocks:
            allocator.free(block); freed = line()  # noqa: E702
        text = said(allocator.free, blocks[0])
        assert text.endswith(f", freed last from Python by {__file__}:{freed} ({sys._getframe().f_code.co_name})"), text


def test_two_allocators_with_the_same_addresses_are_told_apart(allocator):
    with cistern.Allocator.sim(capacity=1 << 30, conf="") as other:
        one, two = allocator.allocate(4096), other.allocate(4096)
        allocator.free(one); first = line()  # noqa: E702
        other.free(two); second = line()  # noqa: E702
        assert f":{first} (" in said(allocator.free, one)
        assert f":{second} (" in said(other.free, two)


def test_pointers_that_nobody_freed_have_no_line(allocator):
    block = allocator.allocate(1 << 20)
    assert "never gave it out" in said(allocator.free, 4096)
    assert "it points 512 B into the block" in said(allocator.free, block + 512)
    assert "never gave it out" in said(allocator.pinned.free, block)
    allocator.free(block)


def test_a_finalizer_whose_block_is_gone_is_said_with_the_line(allocator, monkeypatch):
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: heard.append(what.exc_value))
    buffer = allocator.buffer(4096)
    assert lib.cistern_free(allocator._owned.value, buffer.address) == 0  # as C code might
    del buffer
    gc.collect()
    assert len(heard) == 1 and isinstance(heard[0], cistern.InvalidPointerError)
    assert allocator.stats().num_misuses == 1


def test_the_table_of_lines_is_bounded(allocator):
    for _ in range(_sites._MOST + 100):
        allocator.free(allocator.allocate(512))
    blocks = [allocator.allocate(512) for _ in range(_sites._MOST + 100)]
    for block in blocks:
        allocator.free(block)
    assert len(_sites._freed) <= _sites._MOST and len(_sites._former) == _sites._MOST
