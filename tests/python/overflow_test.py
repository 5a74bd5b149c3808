"""Memory of the host for what the device has no room for."""

import cistern
import pytest
from conftest import MIB


def test_overflow_serves_what_the_device_has_no_room_for(allocator):
    assert allocator.overflow() == (0, 0, 0, 0, 0, "overflow: off\n")
    allocator.set_overflow("512MiB")
    first, second = allocator.allocate(900 * MIB), allocator.allocate(300 * MIB)
    figures = allocator.overflow()
    assert figures.host_bytes == 512 * MIB and figures.handed_out == 300 * MIB
    assert 300 * MIB <= figures.reserved == figures.most_reserved <= 512 * MIB
    assert figures.would_do >= 1200 * MIB
    assert "300.00 MiB of pool {0, 0}" in figures.text
    allocator.set_overflow(0)
    with pytest.raises(cistern.OutOfMemoryError):
        allocator.allocate(200 * MIB)
    allocator.free(first)
    allocator.free(second)
    allocator.empty_cache()
    assert allocator.overflow().reserved == 0


def test_what_cannot_be_is_refused_and_changes_nothing():
    with cistern.Allocator.sim(conf="backing:segments") as none:
        with pytest.raises(cistern.InvalidArgumentError, match="has no pages of host memory"):
            none.set_overflow(MIB)
        assert none.overflow().host_bytes == 0


@pytest.mark.parametrize("size, bytes_of", [
    (0, 0), (1 << 30, 1 << 30), ("64GiB", 64 << 30), ("1.5 gib", 3 << 29), ("512", 512), (" 3 MB ", 3 << 20), ("2T", 2 << 40),
])
def test_a_size_is_a_number_or_a_text(allocator, size, bytes_of):
    allocator.set_overflow(size)
    assert allocator.overflow().host_bytes == bytes_of


@pytest.mark.parametrize("size", ["", "much", "-1", "1 light year", "1e3", "nan", "0x10", "9" * 30, -1, 1 << 64])
def test_another_size_is_refused_by_name(allocator, size):
    with pytest.raises(cistern.InvalidArgumentError, match="size is "):
        allocator.set_overflow(size)
    assert allocator.overflow().host_bytes == 0


@pytest.mark.parametrize("size", [None, 1.5, b"1", [], True])
def test_another_type_is_refused_by_name(allocator, size):
    with pytest.raises(TypeError, match="size must be an int"):
        allocator.set_overflow(size)
