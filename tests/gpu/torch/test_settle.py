"""Training that settles between its steps comes to the same numbers, to the last bit."""

import cistern.torch
import pytest
import torch
from conftest import same
from torch import nn

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("repeatable")


class Settling:
    """The figures of all settles of a training; `by_hand` are after zero_grad()."""

    def __init__(self, by_hand=False, most=None):
        self.by_hand, self.most, self.to_host, self.to_device = by_hand, most, 0, 0

    def follow(self, optimizer):
        if not self.by_hand:
            cistern.torch.settle_after(optimizer, most=self.most)

    def step_ends(self):
        if self.by_hand:
            settled = cistern.torch.settle(most=self.most)
            self.to_host += settled.to_host
            self.to_device += settled.to_device


def trained(settling=None, batches=(64,) * 12):
    """The losses, all parameters at the end, and the most tensors of the optimizer's state on the host."""
    torch.manual_seed(3)
    model = nn.Sequential(*(each for _ in range(8) for each in (nn.Linear(1024, 1024), nn.GELU()))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if settling:
        settling.follow(optimizer)
    losses, most_there = [], 0
    for step, batch in enumerate(batches):
        x = torch.randn(batch * 64, 1024, device="cuda", generator=torch.Generator("cuda").manual_seed(step))
        loss = model(x).square().mean()
        del x
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        del loss
        optimizer.zero_grad(set_to_none=True)
        if settling:
            settling.step_ends()
        most_there = max(most_there, sum(map(in_host, state_of(model, optimizer))))
    return losses, [each.detach().clone() for each in model.parameters()], most_there


def state_of(model, optimizer):
    return [*model.parameters(), *(each for state in optimizer.state.values() for each in state.values()
                                   if each.is_cuda)]


def in_host(tensor):
    return cistern.torch._host_memory._in_host(tensor.device.index, tensor.untyped_storage().data_ptr())


@pytest.fixture
def capped(limit):
    """What a training comes to without a limit; from then on it has that part of what it needs."""

    def cap(part, **how):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        base = trained(**how)
        limit(int((torch.cuda.max_memory_allocated() - before) * part))
        return base

    return cap


@pytest.mark.parametrize("by_hand", [True, False])
def test_training_is_the_same_and_its_state_makes_room(capped, by_hand):
    base, settling = capped(0.75), Settling(by_hand)
    mine = trained(settling)
    assert same(mine, base)
    assert cistern.torch.overflow().handed_out > 0 and cistern.torch.overflow().step_bytes > 0
    if by_hand:
        assert mine[2] > 0 and settling.to_host > 0


def test_training_is_the_same_when_what_has_moved_comes_home(capped):
    batches = (64,) * 6 + (8,) * 30 + (64,) * 4
    base, settling = capped(0.75, batches=batches), Settling(by_hand=True)
    assert same(trained(settling, batches), base)
    assert settling.to_host > 0 and settling.to_device > 0


def test_training_that_fits_moves_nothing():
    settling = Settling(by_hand=True)
    assert same(trained(settling), trained())
    assert settling.to_host == settling.to_device == 0


def test_a_captured_step_replays_with_weights_that_have_moved(limit):
    weights = [torch.full((16 * MIB,), float(number), device="cuda") for number in range(4)]
    out, graph = torch.zeros(16 * MIB, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.add(weights[1], weights[3], out=out)
        assert cistern.torch.settle() == (0, 0, 0)
    limit(256 * MIB)
    for _ in range(5):
        passing = [torch.full((32 * MIB,), 7.0, device="cuda") for _ in range(4)]  # twice what there is room for
        del passing
        cistern.torch.settle()
        out.zero_()
        graph.replay()
        assert bool((out == 4).all())
    assert any(map(in_host, weights))
