"""Training with tensors in the host's memory comes to the same numbers, to the last bit."""

import cistern.torch
import pytest
import torch
from conftest import same
from torch import nn
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("repeatable")


class Block(nn.Module):
    """An attention, and convolutions: each saves other things."""

    def __init__(self, width):
        super().__init__()
        self.qkv, self.norm = nn.Linear(width, 3 * width), nn.LayerNorm(width)
        self.mix = nn.Conv1d(width, width, 3, padding=1)
        self.scale = nn.BatchNorm1d(width)

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (8, -1)).transpose(1, 2) for each in self.qkv(self.norm(x)).chunk(3, dim=-1))
        x = x + nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return x + nn.functional.gelu(self.scale(self.mix(x.transpose(1, 2)))).transpose(1, 2)


def trained(around, steps=4, autocast=False, checkpoints=False, compiled=False):
    """The losses, and all parameters at the end."""
    torch.manual_seed(3)
    model = nn.Sequential(*(Block(256) for _ in range(6))).cuda()
    called = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for step in range(steps):
        generator = torch.Generator("cuda").manual_seed(step)
        x = torch.randn(8, 512, 256, device="cuda", generator=generator)
        optimizer.zero_grad(set_to_none=True)
        with around, torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            if checkpoints:
                for block in model:
                    x = checkpoint(block, x, use_reentrant=False)
            else:
                x = called(x)
            loss = x.float().square().mean()
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [each.detach().clone() for each in model.parameters()]


def without(**how):
    return trained(torch.enable_grad(), **how)


@pytest.mark.parametrize("size", [MIB, "40MiB", "8GiB"])
@pytest.mark.parametrize("autocast", [False, True])
def test_training_is_the_same(size, autocast):
    offload = cistern.torch.host_activations(size)
    assert same(trained(offload, autocast=autocast), without(autocast=autocast))
    assert offload.last_step().moved > 0


def test_training_is_the_same_where_the_host_memory_itself_is_read(monkeypatch):
    monkeypatch.setattr(cistern.torch._saved, "COPY_BACK", False)
    assert same(trained(cistern.torch.host_activations("8GiB")), without())


def test_training_with_checkpoints_is_the_same():
    offload = cistern.torch.host_activations("8GiB")
    assert same(trained(offload, checkpoints=True), without(checkpoints=True))
    assert offload.last_step().tensors >= 5


def test_compiled_training_is_the_same():
    pytest.importorskip("triton")
    torch._dynamo.reset()
    base = without(compiled=True)
    torch._dynamo.reset()
    assert same(trained(cistern.torch.host_activations("8GiB"), compiled=True), base)


def test_training_with_overflow_alone_and_with_both_is_the_same(limit):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    base = without(steps=8)
    need = torch.cuda.max_memory_allocated() - before
    for around in (torch.enable_grad(), cistern.torch.host_activations()):
        limit(int(need * 0.7))
        handed_out = cistern.torch.overflow().handed_out
        assert same(trained(around, steps=8), base)
        assert cistern.torch.overflow().handed_out > handed_out
    assert around.last_step().moved > 0


def between_the_passes(offload):
    """After the forward pass of a step: the bytes of tensors on the device, and what overflow has served so far."""
    with offload:
        x = torch.randn(8, 512, 256, device="cuda", requires_grad=True)
        result = nn.Sequential(*(Block(256) for _ in range(6))).cuda()(x)
        now = cistern.torch._usage.on_device(0), cistern.torch.overflow().handed_out
        result.sum().backward()
    return now


# A tensor that was copied out stays in the device's memory until that is short.
def test_memory_falls_by_what_has_moved_where_it_is_short(limit):
    whole, served = between_the_passes(cistern.torch.host_activations(0))
    offload = cistern.torch.host_activations("128MiB")
    limit(whole - cistern.torch._usage.on_device(0) - 48 * MIB)
    less, served_by_now = between_the_passes(offload)
    assert served_by_now == served  # it is not overflow that makes room
    assert offload.last_step().moved >= 128 * MIB
    assert less <= whole - 120 * MIB


def test_a_step_does_not_wait_on_the_host():
    offload = cistern.torch.host_activations("8GiB")
    trained(offload, steps=2)
    model = nn.Sequential(*(Block(256) for _ in range(6))).cuda()
    x = torch.randn(8, 512, 256, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with offload:
            model(x).square().mean().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert offload.last_step().tensors > 0


def test_gradients_of_gradients_are_the_same():
    def second(around):
        torch.manual_seed(1)
        x = torch.randn(2 * MIB, device="cuda", requires_grad=True)
        with around:
            (first,) = torch.autograd.grad((x.sin() * x.exp()).sum(), x, create_graph=True)
            first.square().sum().backward()
        return x.grad

    assert torch.equal(second(cistern.torch.host_activations("1GiB")), second(torch.enable_grad()))


def test_streams_of_ones_own_keep_their_values():
    stream, wrong = torch.cuda.Stream(), 0
    offload = cistern.torch.host_activations("1GiB")
    for step in range(50):
        x = torch.full((2 * MIB,), float(step), device="cuda", requires_grad=True)
        stream.wait_stream(torch.cuda.current_stream())
        with offload, torch.cuda.stream(stream):
            y = x * 2
            result = (y * y).sum()
            del y
            torch.empty(2 * MIB, device="cuda").fill_(-1)
            result.backward()
        torch.cuda.current_stream().wait_stream(stream)
        wrong += int((x.grad != 8 * step).sum())
    assert wrong == 0


def test_a_captured_step_replays():
    layer, x = nn.Linear(1024, 1024).cuda(), torch.randn(1024, 1024, device="cuda")
    offload = cistern.torch.host_activations("1GiB")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), offload:
        layer(x).relu().sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    layer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with offload, torch.cuda.graph(graph):
        layer(x).relu().sum().backward()
    assert offload.last_step().tensors == 0
    graph.replay()
    captured = layer.weight.grad.clone()
    layer.zero_grad(set_to_none=True)
    layer(x).relu().sum().backward()
    assert torch.equal(captured, layer.weight.grad)
