"""Settling between two steps. Kernels do nothing here: the bytes are those of copies."""

import cistern.torch
import pytest
import torch
from conftest import in_host, run_alone

MIB = 1 << 20


@pytest.fixture
def steps(overflow):
    """Overflow on the first device, which has 64 MiB; an optimizer of a state of 40, and a function: a step that
    needs as many MiB more. The bytes of the state are checked at the end."""
    overflow(64 * MIB)
    values = [torch.full((5 * MIB,), number, dtype=torch.uint8) for number in range(8)]
    state = [torch.nn.Parameter(each.cuda(), requires_grad=False) for each in values]

    class Steps:
        optimizer = torch.optim.SGD(state, lr=0.1)

        @staticmethod
        def step(mib):
            passing = [torch.full((mib * MIB // 4,), 9, dtype=torch.uint8).cuda() for _ in range(4)]
            assert all(bool((each.cpu() == 9).all()) for each in passing)
            passing.clear()
            Steps.optimizer.step()

        @staticmethod
        def on_host():
            return sum(map(in_host, state))

    yield Steps
    assert all(torch.equal(here.cpu(), there) for here, there in zip(state, values))


def test_a_state_makes_room_for_the_steps_and_comes_home(steps):
    handle = cistern.torch.settle_after(steps.optimizer)
    for _ in range(6):
        steps.step(40)
    assert steps.on_host() >= 3
    for _ in range(60):
        steps.step(4)
    assert steps.on_host() == 0
    handle.remove()
    for _ in range(6):
        steps.step(40)
    assert steps.on_host() == 0


def test_a_loop_of_ones_own_says_what_has_moved(steps):
    settled = []
    for _ in range(6):
        steps.step(40)
        settled.append(cistern.torch.settle("cuda:0", most="8MiB"))
    assert 0 < max(each.to_host for each in settled) <= 8 * MIB
    assert isinstance(settled[0], cistern.Settled) and steps.on_host() > 0
    assert cistern.torch.settle(most=0)[:2] == (0, 0)


def test_each_of_the_steps_moves_no_more_than_it_is_told(steps):
    cistern.torch.settle_after(steps.optimizer, most=0)
    for _ in range(6):
        steps.step(40)
    assert steps.on_host() == 0


def test_a_capture_moves_nothing(steps):
    cistern.torch.settle_after(steps.optimizer)
    for _ in range(3):
        steps.step(40)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        steps.optimizer.step()
        assert cistern.torch.settle() == (0, 0, 0)
    graph.replay()


def test_the_stream_waits_for_the_copies_of_host_activations(steps, monkeypatch):
    waits, wait_stream = [], torch.cuda.Stream.wait_stream
    leaf = torch.zeros(2 * MIB, device="cuda", requires_grad=True)
    with cistern.torch.host_activations("8MiB") as offload:
        kept = (leaf.exp() * leaf.exp()).exp()
        assert offload.last_step().moved > 0
        monkeypatch.setattr(torch.cuda.Stream, "wait_stream",
                            lambda self, other: waits.append((self, other)) or wait_stream(self, other))
        cistern.torch.settle()
        assert waits == [(torch.cuda.current_stream(), cistern.torch._store._lanes[0])]
    del kept


def test_the_stream_of_the_work_settles_its_own_tensors(steps):
    cistern.torch.settle_after(steps.optimizer)
    with torch.cuda.stream(torch.cuda.Stream()):  # the state is the default stream's
        for _ in range(6):
            steps.step(40)
    assert steps.on_host() == 0


@pytest.mark.parametrize("wrong, error", [("much", ValueError), (-1, ValueError), (1.5, TypeError), ([], TypeError)])
def test_what_cannot_be_is_refused(steps, wrong, error):
    with pytest.raises(error, match="most"):
        cistern.torch.settle(most=wrong)
    with pytest.raises(error, match="most"):
        cistern.torch.settle_after(steps.optimizer, most=wrong)
    with pytest.raises(TypeError, match="settle_after needs a torch.optim.Optimizer"):
        cistern.torch.settle_after([])
    with pytest.raises(ValueError, match="there is no device 7"):
        cistern.torch.settle(7)
    steps.optimizer.step()


def test_overflow_has_to_be_on():
    parameter = torch.zeros(4, device="cuda")
    with pytest.raises(RuntimeError, match=r"settle\(\) needs overflow, which is off on device 0"):
        cistern.torch.settle()
    with pytest.raises(RuntimeError, match=r"settle_after\(\) needs overflow, which is off on device 0"):
        cistern.torch.settle_after(torch.optim.SGD([parameter], lr=0.1))
    later = torch.optim.SGD([torch.zeros(4)], lr=0.1)
    cistern.torch.settle_after(later)
    later.step()
    later.add_param_group({"params": [parameter]})
    with pytest.raises(RuntimeError, match="off on device 0"):
        later.step()


NOT_NATIVE = """
for call in (cistern.torch.settle, lambda: cistern.torch.settle_after(None)):
    try:
        call()
    except RuntimeError as refused:
        print(refused)
"""


@pytest.mark.parametrize("before, mode", [("", "off"), ("cistern.torch.enable('plugin')", "plugin")])
def test_it_needs_the_native_mode(before, mode):
    said, _ = run_alone(f"{before}\n{NOT_NATIVE}")
    assert said.count("in its native mode") == 2 and said.count(f"now it is {mode}") == 2


def test_a_device_without_a_tensor_has_nothing_to_move():
    said, _ = run_alone("""
cistern.torch.enable("native", overflow="1GiB")
print(*cistern.torch.settle(1))
torch.zeros(4, device="cuda:1")
print(*cistern.torch.settle(1)[:2])
""")
    assert said.split() == ["0"] * 5
