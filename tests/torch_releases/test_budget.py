"""How many bytes host_activations() moves: as the device is short of them, by either kind of copies."""

import cistern.torch
import pytest
from conftest import run_alone


@pytest.fixture(params=["beside the work", "in its stream"])
def beside(request):
    return request.param == "beside the work"


FOLLOWS = """
cistern.torch.enable("native", overflow="4GiB")
from cistern.torch import _store

_store.OVERLAPS = BESIDE
MIB = 1 << 20


class Grow(torch.autograd.Function):  # a tensor of that size, without a parameter that is as large
    @staticmethod
    def forward(ctx, small):
        return torch.empty(4 * MIB, device="cuda")

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros(1, device="cuda")


class Use(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        ctx.save_for_backward(tensor)
        return torch.zeros(4, device="cuda")

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros_like(ctx.saved_tensors[0])


def step(count):
    small = torch.zeros(1, device="cuda", requires_grad=True)
    before = cistern.torch.overflow().handed_out if torch.cuda.is_initialized() else 0
    with offload:
        made = [Use.apply(Grow.apply(small)) for _ in range(count)]
        sum(each.sum() for each in made).backward()
    print(*(each // MIB for each in offload.last_step()), (cistern.torch.overflow().handed_out - before) // MIB)


torch.cuda.set_per_process_memory_fraction(800 * MIB / torch.cuda.mem_get_info()[1])
offload = cistern.torch.host_activations()
for count in [10, 60, 60, 60, 60, 60, 10, 10, 10]:
    step(count)
"""


def test_a_budget_follows_overflow(beside):
    said, _ = run_alone(FOLLOWS.replace("BESIDE", str(beside)))
    steps = [list(map(int, line.split())) for line in said.splitlines()]
    assert steps[0] == [0, 0, 0, 0]  # 160 of 800 MiB
    moved, _, budget, overflowed = steps[1]  # 960 of 800 MiB
    assert moved == 0 and overflowed > 0 and 100 <= budget <= 400
    for moved, _, budget, overflowed in steps[3:6]:
        assert 160 <= moved <= 500 and overflowed == 0
    assert steps[-1] == [0, 0, 0, 0]


def test_a_budget_that_follows_needs_overflow():
    offload = cistern.torch.host_activations()
    with pytest.raises(RuntimeError, match="overflow, which is off on device 0"), offload:
        pass
    with cistern.torch.host_activations("1MiB"):
        pass


def test_a_need_counts_for_longer_only_while_steps_take_turns():
    from cistern.torch._budget import Adapting

    adapting, capacity, gib = Adapting(), 10 << 30, 1 << 30

    def overflows(need):
        moved = min(adapting.budget(capacity), need)
        overflowed = need - moved > capacity
        adapting.after(moved, need - moved, capacity, overflowed)
        return overflowed

    turns = [overflows(need * gib) for need in [20, 5, 5, 5] * 10]
    assert turns[0] and 2 <= sum(turns) <= 3 and not any(turns[8:])
    assert not any(overflows(5 * gib) for _ in range(1000))
    assert overflows(20 * gib)
    for _ in range(2):
        assert adapting.budget(capacity) > 0 and not overflows(5 * gib)
    assert adapting.budget(capacity) == 0
