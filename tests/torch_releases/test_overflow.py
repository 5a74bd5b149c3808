"""Tensors for which a device is too full, in the host's memory."""

import cistern.torch
import pytest
import torch
from conftest import run_alone

MIB = 1 << 20


def in_host(tensor):
    return cistern.torch._host_memory._in_host(tensor.device.index, tensor.untyped_storage().data_ptr())


@pytest.fixture
def overflow():
    """Overflow on the first device, and its capacity is so many bytes more than it has now."""

    def begin(more):
        torch.cuda.empty_cache()
        total = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + more) / total)
        cistern.default(0).set_overflow("4GiB")

    yield begin
    cistern.default(0).set_overflow(0)


def test_overflow_serves_tensors(overflow):
    overflow(64 * MIB)
    first = torch.empty(60 * MIB, dtype=torch.uint8, device="cuda")
    second = torch.full((40 * MIB,), 7, dtype=torch.uint8).cuda()
    assert not in_host(first) and in_host(second)
    assert bool((second.cpu() == 7).all())
    figures = cistern.torch.overflow("cuda:0")
    assert figures.host_bytes == 4 << 30 and figures.reserved >= 40 * MIB and "MiB" in figures.text


def test_enable_turns_overflow_on_for_each_device():
    said, _ = run_alone("""
cistern.torch.enable("native", overflow="2GiB")
torch.cuda.set_per_process_memory_fraction(0.001)
for device in (0, 1):
    torch.cuda.set_per_process_memory_fraction(64 / (torch.cuda.mem_get_info(device)[1] >> 20), device)
    made = torch.empty(100 << 20, dtype=torch.uint8, device=f"cuda:{device}")
    print(cistern.torch.overflow(device).host_bytes >> 20, cistern.torch.overflow(device).handed_out >> 20)
""")
    assert said.split() == ["2048", "100"] * 2


def test_what_the_host_does_not_admit_is_refused_at_once():
    said, _ = run_alone("""
try:
    cistern.torch.enable("native", overflow="900TiB")
except ValueError as refused:
    print("that the host admits" in str(refused), cistern.torch.enabled())
cistern.torch.enable("native", overflow="1GiB")
print(torch.zeros(4, device="cuda").numel(), cistern.torch.overflow().host_bytes >> 20)
""")
    assert said.split() == ["True", "None", "4", "1024"]


def test_a_device_without_host_pages_goes_on_with_a_warning():
    said, warned = run_alone("""
cistern.torch.enable("native", overflow="1GiB")
print(torch.zeros(4, device="cuda").numel(), cistern.torch.overflow().host_bytes)
""", CISTERN_CONF="backing:segments")
    assert said.split() == ["4", "0"]
    assert "device 0 has no overflow" in warned and "no pages of host memory" in warned


def test_without_host_pages_host_activations_says_why():
    said, _ = run_alone("""
cistern.torch.enable("native")
for size in ("1GiB", None):
    try:
        cistern.torch.host_activations(size).__enter__()
    except RuntimeError as why:
        print("memory comes in segments" in str(why), "overflow, which is off" in str(why))
print(torch.zeros(4, device="cuda").numel())
""", CISTERN_CONF="backing:segments")
    assert said.split() == ["True", "False", "False", "True", "4"]
