"""Training under Cistern comes to PyTorch's own losses, bit by bit where PyTorch repeats itself."""

import json

import pytest
import torch

SOURCE = """
import json, sys, torch
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = sys.argv[1] == "benchmark"
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
    torch.nn.Conv2d(32, 64, 3, stride=2), torch.nn.ReLU()).cuda()
head = torch.nn.Linear(64, 10).cuda()
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-3)
losses = []
for step in range(24):
    g = torch.Generator().manual_seed(step)
    size, batch = 32 + 16 * (step % 5), 8 + 8 * (step % 3)
    x = torch.randn(batch, 3, size, size, generator=g).pin_memory().cuda(non_blocking=True)
    y = torch.randint(10, (batch,), generator=g).cuda()
    loss = torch.nn.functional.cross_entropy(head(model(x).mean((2, 3))), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    losses.append(loss.item())
print(json.dumps(losses))
"""
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def losses(run, mode, *args):
    status, out, err = run(SOURCE, *args, mode=mode, environment=DETERMINISTIC)
    assert status == 0, err
    return json.loads(out.splitlines()[-1])


def test_losses_are_pytorchs_own(run):
    assert losses(run, "native", "plain") == losses(run, None, "plain")


def test_losses_are_pytorchs_own_by_the_plug_in(run):
    assert losses(run, "plugin", "plain") == losses(run, None, "plain")


def test_cudnn_benchmark_runs(run):
    assert losses(run, "native", "benchmark") == pytest.approx(losses(run, None, "plain"), rel=0.1)


def test_tensors_that_streams_pass_on_keep_their_values():
    streams = [torch.cuda.Stream() for _ in range(4)]
    value = torch.zeros(1 << 20, device="cuda")
    for step in range(400):
        last, here = streams[(step - 1) % 4], streams[step % 4]
        here.wait_stream(last)
        with torch.cuda.stream(here):
            value.record_stream(here)
            value = value + 1
            torch.empty(1 << (16 + step % 6), device="cuda").fill_(-1)
    torch.cuda.synchronize()
    assert (value == 400).all().item()


def test_data_loader_workers_with_pinned_memory():
    data = torch.arange(4096, dtype=torch.float32).view(256, 16)
    loader = torch.utils.data.DataLoader(data, batch_size=32, num_workers=2, pin_memory=True)
    total = sum(batch.cuda(non_blocking=True).sum().item() for batch in loader)
    assert total == data.sum().item()


def test_memory_settings_are_understood():
    torch.cuda.memory._set_allocator_settings("garbage_collection_threshold:0.8")
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    assert torch.ones(100, device="cuda").sum().item() == 100
    torch.cuda.memory._set_allocator_settings("expandable_segments:False")


def test_caching_can_be_switched_off_and_on():
    torch.cuda.memory.caching_allocator_enable(False)
    try:
        before = torch.cuda.memory_allocated()
        plain = torch.ones(1 << 20, device="cuda")
        assert torch.cuda.memory_allocated() == before
    finally:
        torch.cuda.memory.caching_allocator_enable(True)
    assert plain.sum().item() == 1 << 20
    del plain
