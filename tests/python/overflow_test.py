"""Memory of the host for what the device has no room for."""

import random

import cistern
import pytest
from conftest import MIB


def test_overflow_serves_what_the_device_has_no_room_for(allocator):
    assert allocator.overflow() == (0, 0, 0, 0, 0, "overflow: off\n")
    allocator.set_overflow("512MiB")
    first, second = allocator.allocate(1024 * MIB), allocator.allocate(300 * MIB)
    figures = allocator.overflow()
    assert figures.host_bytes == 512 * MIB and figures.handed_out == 300 * MIB
    assert 300 * MIB <= figures.reserved == figures.most_reserved <= 512 * MIB
    assert figures.would_do >= 1324 * MIB
    assert (allocator.host_bytes_in(first), allocator.host_bytes_in(second)) == (0, 300 * MIB)
    assert (allocator.take_peak(), allocator.take_peak()) == (1324 * MIB, 1324 * MIB)
    assert "300.00 MiB of pool {0, 0}" in figures.text
    allocator.set_overflow(0)
    with pytest.raises(cistern.OutOfMemoryError):
        allocator.allocate(200 * MIB)
    allocator.free(first)
    assert (allocator.take_peak(), allocator.take_peak()) == (1324 * MIB, 300 * MIB)
    allocator.free(second)
    with pytest.raises(cistern.InvalidPointerError):
        allocator.host_bytes_in(second)
    allocator.empty_cache()
    assert allocator.overflow().reserved == 0


def random_program(seed):
    """Allocations, as their bytes, and frees, as the numbers of the allocations."""
    chosen, held, program = random.Random(seed), [], []
    sizes = [chosen.choice([MIB // 4, MIB, 3 * MIB, 10 * MIB, 40 * MIB, 64 * MIB]) for _ in range(chosen.randint(2, 8))]
    number = 0
    for _ in range(chosen.randint(60, 300)):
        if not held or (chosen.random() < 0.55 and len(held) < 40):
            program.append(("allocate", int(chosen.choice(sizes) * chosen.uniform(0.5, 1.5))))
            held.append(number)
            number += 1
        else:
            program.append(("free", held.pop(chosen.randrange(len(held)))))
    return program


def fits(allocator, program):
    blocks = []
    try:
        for what, value in program:
            if what == "allocate":
                blocks.append(allocator.allocate(value))
            else:
                allocator.free(blocks[value])
                blocks[value] = None
        return True
    except cistern.OutOfMemoryError:
        return False
    finally:
        for block in filter(None, blocks):
            allocator.free(block)


def test_the_limit_that_would_do_is_about_right():
    enough = 0
    for seed in range(40):
        program = random_program(seed)
        with cistern.Allocator.sim(capacity=8 << 30) as roomy:
            assert fits(roomy, program)
            need = roomy.stats_dict()["allocated_bytes.all.peak"]
        with cistern.Allocator.sim(capacity=need * 85 // 100 // (2 * MIB) * 2 * MIB) as small:
            small.set_overflow("8GiB")
            assert fits(small, program)
            limit = small.overflow().would_do
        assert limit > 0
        with cistern.Allocator.sim(capacity=8 << 30, conf={"limit": limit}) as limited:
            enough += fits(limited, program)
        more = max(limit // 10, 2 * MIB)  # a page at least
        with cistern.Allocator.sim(capacity=8 << 30, conf={"limit": limit + more}) as limited:
            assert fits(limited, program), seed
    assert enough >= 20


def test_what_cannot_be_is_refused_and_changes_nothing():
    with cistern.Allocator.sim(conf="backing:segments") as none:
        with pytest.raises(cistern.InvalidArgumentError, match="memory comes in segments"):
            none.set_overflow(MIB)
        assert none.overflow().host_bytes == 0


@pytest.mark.parametrize("size, bytes_of", [
    (0, 0), (1 << 30, 1 << 30), ("64GiB", 64 << 30), ("1.5 gib", 3 << 29), ("2097152", 2 << 20), (" 3 MB ", 3 << 20), ("2T", 2 << 40),
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
    with pytest.raises(TypeError, match="size must be an int of bytes or a str"):
        allocator.set_overflow(size)
