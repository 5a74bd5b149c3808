"""How the budget of cistern.torch.host_activations follows overflow. It needs no PyTorch."""

from types import SimpleNamespace

import pytest
from cistern.torch._budget import Adapting

MIB, GIB = 1 << 20, 1 << 30


class Program:
    """Needs so many bytes at its peak, of which `hidden` are in use for a moment that nobody looks at."""

    def __init__(self, capacity, need, hidden=0):
        self.capacity, self.need, self.hidden = capacity, need, hidden
        self.adapting, self.budget = Adapting(0, 0), 0
        self.handed_out = self.reserved = 0

    def step(self):
        """The bytes that overflow had to serve."""
        moved = self.budget
        beyond = max(0, self.need - moved - self.capacity)
        self.handed_out += beyond
        self.reserved = max(self.reserved, beyond)
        served = self.adapting.served(SimpleNamespace(handed_out=self.handed_out, reserved=self.reserved))
        seen = min(self.capacity, self.need - moved) - self.hidden if moved else 0
        self.budget = self.adapting.after(moved, served, self.capacity, seen)
        return beyond


@pytest.mark.parametrize("hidden", [0, 512 * MIB, 3 * GIB])
@pytest.mark.parametrize("beyond", [300 * MIB, 2 * GIB, 6 * GIB])
def test_a_program_beyond_the_device_settles(beyond, hidden):
    program = Program(20 * GIB, 20 * GIB + beyond, hidden)
    overflowed = [program.step() for _ in range(100)]
    assert overflowed[0] == beyond
    assert sum(each > 0 for each in overflowed[1:]) <= 2
    assert beyond <= program.budget <= beyond + GIB


def test_a_program_that_fits_moves_nothing():
    program = Program(20 * GIB, 19 * GIB)
    assert [program.step() for _ in range(10)] == [0] * 10 and program.budget == 0


def test_a_program_that_needs_less_later_moves_less():
    program = Program(20 * GIB, 24 * GIB)
    for _ in range(5):
        program.step()
    program.need = 21 * GIB
    for _ in range(5):
        assert program.step() == 0
    assert GIB <= program.budget <= 2 * GIB
    program.need = 10 * GIB
    for _ in range(3):
        program.step()
    assert program.budget == 0


def test_memory_that_serves_again_and_again_counts_once():
    adapting = Adapting(0, 0)
    assert adapting.served(SimpleNamespace(handed_out=50 * GIB, reserved=GIB)) == GIB
    assert adapting.served(SimpleNamespace(handed_out=50 * GIB, reserved=GIB)) == 0
    assert adapting.served(SimpleNamespace(handed_out=50 * GIB + MIB, reserved=GIB)) == MIB
    assert adapting.served(SimpleNamespace(handed_out=51 * GIB + MIB, reserved=0)) == GIB
