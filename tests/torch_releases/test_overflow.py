"""Tensors for which a device is too full, in the host's memory."""

import cistern.torch
import pytest
import torch
from conftest import in_host, run_alone

MIB = 1 << 20


def test_overflow_serves_tensors(overflow):
    overflow(64 * MIB)
    first = torch.empty(60 * MIB, dtype=torch.uint8, device="cuda")
    second = torch.full((40 * MIB,), 7, dtype=torch.uint8).cuda()
    assert not in_host(first) and in_host(second)
    assert bool((second.cpu() == 7).all())
    figures = cistern.torch.overflow("cuda:0")
    assert figures.host_bytes == 4 << 30 and figures.reserved >= 36 * MIB and "MiB" in figures.text


def test_a_snapshot_has_the_part_on_the_device(overflow):
    torch.cuda.empty_cache()  # host memory that lies free would serve all of it
    overflow(64 * MIB)
    first = torch.empty(60 * MIB, dtype=torch.uint8, device="cuda")
    second = torch.empty(40 * MIB, dtype=torch.uint8, device="cuda")  # the device has 4 MiB for it
    assert in_host(second)
    segments = torch.cuda.memory_snapshot()
    assert sum(segment["total_size"] for segment in segments) == torch.cuda.memory_reserved()
    sizes = {block["address"]: block["size"] for segment in segments for block in segment["blocks"]}
    assert sizes[first.data_ptr()] == 60 * MIB
    assert sizes[second.data_ptr()] == 40 * MIB - cistern.torch.overflow().reserved


def test_enable_turns_overflow_on_for_each_device():
    said, _ = run_alone("""
cistern.torch.enable("native", overflow="2GiB")
torch.cuda.set_per_process_memory_fraction(0.001)
for device in (0, 1):
    torch.cuda.set_per_process_memory_fraction(64 / (torch.cuda.mem_get_info(device)[1] >> 20), device)
    full = torch.empty(64 << 20, dtype=torch.uint8, device=f"cuda:{device}")
    made = torch.empty(100 << 20, dtype=torch.uint8, device=f"cuda:{device}")
    print(cistern.torch.overflow(device).host_bytes >> 20, cistern.torch.overflow(device).handed_out >> 20)
""")
    assert said.split() == ["2048", "100"] * 2


def test_a_second_call_sets_overflow_before_the_first_tensor():
    said, _ = run_alone("""
cistern.torch.enable("native")
print(cistern.torch.enable(overflow="2GiB"), torch.zeros(4, device="cuda").numel(), cistern.torch.overflow().host_bytes >> 20)
print(cistern.torch.enable(), cistern.torch.enable(overflow=2 << 30))
try:
    cistern.torch.enable(overflow="1GiB")
except RuntimeError as late:
    print("CUDA is initialised already" in str(late), cistern.torch.overflow().host_bytes >> 20)
""")
    assert said.split() == ["native", "4", "2048", "native", "native", "True", "2048"]


def test_what_the_host_does_not_admit_or_is_no_page_is_refused_at_once():
    said, _ = run_alone("""
for size, why in (("900TiB", "that the host admits"), ("512", "512 bytes are less than a page")):
    try:
        cistern.torch.enable("native", overflow=size)
    except ValueError as refused:
        print(why in str(refused), cistern.torch.enabled())
cistern.torch.enable("native", overflow="1GiB")
print(torch.zeros(4, device="cuda").numel(), cistern.torch.overflow().host_bytes >> 20)
""")
    assert said.split() == ["True", "None", "True", "None", "4", "1024"]


def test_a_device_without_host_pages_goes_on_with_a_warning():
    said, warned = run_alone("""
cistern.torch.enable("native", overflow="1GiB")
print(torch.zeros(4, device="cuda").numel(), cistern.torch.overflow().host_bytes)
""", CISTERN_CONF="backing:segments")
    assert said.split() == ["4", "0"]
    assert "device 0 has no overflow" in warned and "memory comes in segments" in warned


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
