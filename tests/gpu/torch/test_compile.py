"""torch.compile(mode="reduce-overhead"): graph trees, which set the pool back to checkpoints."""

import gc

import pytest
import torch

pytest.importorskip("triton")


def trained(compiled, shapes):
    torch.manual_seed(5)
    torch._dynamo.reset()
    model = torch.nn.Sequential(
        torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 4)
    ).cuda()
    called = torch.compile(model, mode="reduce-overhead") if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for step in range(60):
        generator = torch.Generator(device="cuda").manual_seed(step)
        x = torch.randn(shapes[step % len(shapes)], 128, device="cuda", generator=generator)
        if compiled:
            torch.compiler.cudagraph_mark_step_begin()
        loss = called(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return losses


def test_three_shapes_forward_and_backward_learn_as_eager_does():
    compiled = trained(True, (16, 32, 64))
    eager = trained(False, (16, 32, 64))
    assert compiled == pytest.approx(eager, rel=2e-3)


def test_a_thousand_replays_keep_outputs_apart():
    torch._dynamo.reset()

    @torch.compile(mode="reduce-overhead")
    def step(x):
        return (x @ x).relu() + 1, x.sum(0)

    x = torch.eye(64, device="cuda")
    for i in range(1000):
        torch.compiler.cudagraph_mark_step_begin()
        first, second = step(x * (i % 5))
        kept = first.clone()
        if i % 100 == 0:
            scale = float(i % 5)
            assert torch.allclose(kept, torch.eye(64, device="cuda") * scale * scale + 1)
            assert torch.allclose(second, torch.full((64,), scale, device="cuda"))
    del step, first, second, kept
    torch._dynamo.reset()
    gc.collect()
