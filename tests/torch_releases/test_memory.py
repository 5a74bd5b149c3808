"""Blocks, figures, limits: torch.cuda.memory and torch.accelerator.memory."""

import ctypes

import pytest
import torch

MIB = 1 << 20


def block(bytes_wanted, device="cuda"):
    return torch.empty(bytes_wanted, dtype=torch.uint8, device=device)


def test_the_allocator_is_cistern():
    assert torch.cuda.memory.get_allocator_backend() == "cistern"
    assert torch.cuda.memory._get_current_allocator() is not None
    assert torch.cuda.device_count() == 2


def test_figures_follow_a_block():
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    before = torch.cuda.memory_allocated()
    held = block(10 * MIB)
    assert torch.cuda.memory_allocated() - before == 10 * MIB
    assert torch.cuda.memory_reserved() >= 10 * MIB
    del held
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() == before + 10 * MIB
    figures = torch.cuda.memory_stats()
    assert figures["allocated_bytes.all.allocated"] == figures["allocated_bytes.all.freed"] == 10 * MIB
    assert figures["num_ooms"] == 0
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == before
    assert "Allocated memory" in torch.cuda.memory_summary()


def test_memory_stats_has_cisterns_own_counts():
    before = torch.cuda.memory_stats("cuda:1")
    held = block(64 * MIB, "cuda:1")
    after = torch.cuda.memory_stats(1)
    assert after["cistern.pages.created"] > before["cistern.pages.created"]
    assert after["cistern.memory_call_ns"] > before["cistern.memory_call_ns"]
    del held
    torch.cuda.reset_accumulated_memory_stats(1)
    assert torch.cuda.memory_stats(1)["cistern.pages.created"] == after["cistern.pages.created"]


def test_empty_cache_gives_memory_back():
    held = block(64 * MIB)
    free, total = torch.cuda.mem_get_info()
    del held
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] >= free + 64 * MIB
    assert torch.cuda.mem_get_info()[1] == total


def test_contents_survive_copies_in_all_directions():
    host = torch.arange(100_000, dtype=torch.int32)
    first = host.cuda()
    second = first.to("cuda:1")
    assert first.device.index == 0 and second.device.index == 1
    assert torch.equal(first.clone().cpu(), host)
    assert torch.equal(second.cpu(), host)
    assert torch.equal(second.to("cuda:0").cpu(), host)


def test_a_block_used_by_another_stream_is_not_taken_before_its_work_is_done():
    side = torch.cuda.Stream()
    used = block(4 * MIB)
    with torch.cuda.stream(side):
        used.copy_(torch.zeros(4 * MIB, dtype=torch.uint8), non_blocking=True)
    used.record_stream(side)
    reserved, total = torch.cuda.memory_reserved(), torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(reserved / total)  # there is no other memory
    del used
    torch.cuda.synchronize()
    again = block(4 * MIB)  # at the same address, or where its page has moved
    assert again.data_ptr() != 0 and torch.cuda.memory_reserved() == reserved


def test_raw_blocks():
    before = torch.cuda.memory_allocated()
    pointer = torch.cuda.caching_allocator_alloc(5 * MIB)
    assert torch.cuda.memory_allocated() - before == 5 * MIB
    torch.cuda.caching_allocator_delete(pointer)
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("recorded", [False, True])
def test_a_pointer_that_is_no_block_is_not_freed(recorded):
    pointer = torch.cuda.caching_allocator_alloc(5 * MIB)
    if recorded:
        torch.cuda.memory._record_memory_history(max_entries=10)
    try:
        for wrong in (pointer + 1, pointer + 512, 4096):
            with pytest.raises(RuntimeError, match="invalid device pointer"):
                torch.cuda.caching_allocator_delete(wrong)
        torch.cuda.caching_allocator_delete(pointer)
        before = torch.cuda.memory_allocated()
        with pytest.raises(RuntimeError, match="invalid device pointer"):
            torch.cuda.caching_allocator_delete(pointer)
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    assert torch.cuda.memory_allocated() == before


def test_a_limit_refuses_and_observers_are_told():
    told = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *facts: told.append(facts))
    ooms = torch.cuda.memory_stats()["num_ooms"]
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 100 * MIB) / total)
    assert torch.cuda.memory.get_per_process_memory_fraction() < 0.01
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate 200.00 MiB"):
        block(200 * MIB)
    assert [facts[:2] for facts in told] == [(0, 200 * MIB)]
    assert torch.cuda.memory_stats()["num_ooms"] == ooms + 1
    assert block(50 * MIB).numel() == 50 * MIB


def test_a_device_that_is_not_there_is_refused():
    for call in (torch.cuda.memory_stats, torch.cuda.memory_allocated, torch.cuda.reset_peak_memory_stats,
                 torch.cuda.reset_accumulated_memory_stats, torch.cuda.memory.get_per_process_memory_fraction,
                 lambda device: torch.cuda.set_per_process_memory_fraction(0.5, device)):
        with pytest.raises(RuntimeError, match="Invalid device argument"):
            call(2)


def test_a_block_larger_than_the_device_is_refused():
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        block(1 << 40)


@pytest.mark.since(12)
def test_a_rejected_request_is_counted_apart(direct):
    last = ctypes.c_long()
    direct("rejected", ctypes.byref(last))
    before = torch.cuda.memory_stats()
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.memory._set_allocator_settings("throw_on_cudamalloc_oom:True")
    try:
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 100 * MIB) / total)
        with pytest.raises(torch.OutOfMemoryError):
            block(200 * MIB)
    finally:
        torch.cuda.memory._set_allocator_settings("throw_on_cudamalloc_oom:False")
    direct("rejected", ctypes.byref(last))
    assert last.value == 200 * MIB
    after = torch.cuda.memory_stats()
    assert after["num_ooms"] == before["num_ooms"]
    assert after["num_oom_rejections"] == before["num_oom_rejections"] + 1


def test_caching_is_switched_off_and_on():
    before = torch.cuda.memory_allocated()
    torch.cuda.memory.caching_allocator_enable(False)
    try:
        outside = block(8 * MIB)
        assert torch.cuda.memory_allocated() == before
    finally:
        torch.cuda.memory.caching_allocator_enable(True)
    inside = block(8 * MIB)
    assert torch.cuda.memory_allocated() == before + 8 * MIB
    del inside, outside


@pytest.mark.since(12)
def test_caching_is_disabled_for_a_while():
    with torch.cuda.memory.caching_allocator_disabled():
        assert not torch._C._cuda_cudaCachingAllocator_is_enabled()
    assert torch._C._cuda_cudaCachingAllocator_is_enabled()


def test_the_accelerators_functions_reach_it():
    memory = torch.accelerator.memory
    held = block(3 * MIB)
    assert memory.memory_allocated() == torch.cuda.memory_allocated()
    assert memory.memory_reserved() == torch.cuda.memory_reserved()
    assert memory.max_memory_allocated() == torch.cuda.max_memory_allocated()
    assert memory.memory_stats()["allocated_bytes.all.current"] == torch.cuda.memory_allocated()
    del held
    memory.empty_cache()
    memory.reset_peak_memory_stats()
    memory.reset_accumulated_memory_stats()
    assert memory.max_memory_reserved() == torch.cuda.memory_reserved()
    if hasattr(memory, "get_memory_info"):
        assert memory.get_memory_info() == torch.cuda.mem_get_info()


def test_settings_are_taken():
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    torch.cuda.memory._set_allocator_settings("expandable_segments:False")
    with pytest.raises((RuntimeError, ValueError)):  # which depends on the release
        torch.cuda.memory._set_allocator_settings("no_such_setting:1")


def test_the_profiler_is_told_of_memory():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        held = block(6 * MIB)
        del held
    used = [event.device_memory_usage for event in profile.events() if event.name == "aten::empty"]
    assert 6 * MIB in used
