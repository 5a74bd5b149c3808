"""How the budget of cistern.torch.host_activations follows what steps need. It needs no PyTorch."""

import pytest
from cistern.torch._budget import Adapting

MIB, GIB = 1 << 20, 1 << 30


class Program:
    """Needs so many bytes at its peak. The device cannot serve `lost` of its bytes."""

    def __init__(self, capacity, need, lost=0):
        self.capacity, self.need, self.lost, self.base = capacity, need, lost, 0
        self.adapting, self.budget = Adapting(), 0

    def step(self):
        """The bytes that overflow had to serve."""
        self.budget = self.adapting.budget(self.capacity, self.base)
        need = self.need - self.budget
        beyond = max(0, need - (self.capacity - self.lost))
        self.adapting.after(self.budget, need, self.capacity, beyond > 0, self.base)
        return beyond


@pytest.mark.parametrize("lost", [0, 100 * MIB, 3 * GIB])
@pytest.mark.parametrize("beyond", [300 * MIB, 2 * GIB, 6 * GIB])
def test_a_program_beyond_the_device_settles(beyond, lost):
    program = Program(20 * GIB, 20 * GIB + beyond, lost)
    overflowed = [program.step() for _ in range(100)]
    assert overflowed[0] == beyond + lost
    assert sum(each > 0 for each in overflowed[1:]) <= 7
    assert beyond + lost <= program.budget <= beyond + 2 * lost + 160 * MIB


def test_a_program_that_fits_moves_nothing():
    program = Program(20 * GIB, 19 * GIB)
    assert [program.step() for _ in range(10)] == [0] * 10 and program.budget == 0


def test_a_program_that_needs_less_later_moves_less():
    program = Program(20 * GIB, 24 * GIB)
    for _ in range(5):
        program.step()
    assert program.budget == 4 * GIB
    program.need = 21 * GIB
    assert [program.step() for _ in range(5)] == [0] * 5
    assert program.step() == 0
    assert program.budget == GIB
    program.need = 10 * GIB
    for _ in range(3):
        program.step()
    assert program.budget == 0


def test_what_comes_between_two_steps_counts_at_once():
    program = Program(20 * GIB, 21 * GIB)
    program.step()
    program.need, program.base = 24 * GIB, 3 * GIB  # the optimiser's state
    assert program.step() == 0 and program.budget == 4 * GIB


def test_slack_is_forgotten():
    program = Program(20 * GIB, 21 * GIB, lost=GIB)
    for _ in range(20):
        program.step()
    with_slack = program.budget
    program.lost = 0
    assert sum(program.step() for _ in range(2000)) == 0
    assert program.budget < with_slack - GIB // 2


def test_steps_that_need_more_by_turns_overflow_ever_more_seldom():
    program, overflowed = Program(20 * GIB, 21 * GIB), 0
    for number in range(400):
        program.need = (21 if number % 6 else 22) * GIB
        overflowed += program.step() > 0
    assert overflowed <= 8
