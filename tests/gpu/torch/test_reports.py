"""What torch.cuda says of memory: statistics, snapshots, history."""

import json
import os
import pickle
import subprocess

import pytest
import torch

MIB = 1 << 20


def test_memory_stats_has_every_key_and_counts(run):
    keys = "import torch, json; torch.ones(1, device='cuda'); print(json.dumps(sorted(torch.cuda.memory_stats())))"
    status, theirs, err = run(keys, mode=None)
    assert status == 0, err
    torch.cuda.init()  # before it there are no statistics
    ours = [f"cistern.pages.{name}" for name in ("created", "freezes", "recycled", "retired", "returned", "revived")]
    assert sorted(torch.cuda.memory_stats()) == sorted([*json.loads(theirs), *ours, "cistern.memory_call_ns"])
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()
    block = torch.empty(10 * MIB, dtype=torch.uint8, device="cuda")
    now = torch.cuda.memory_stats()
    assert now["allocation.all.current"] - before["allocation.all.current"] == 1
    assert now["allocated_bytes.all.current"] - before["allocated_bytes.all.current"] == 10 * MIB
    del block
    after = torch.cuda.memory_stats()
    assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
    assert torch.cuda.max_memory_allocated() == now["allocated_bytes.all.current"]
    assert "requested" in torch.cuda.memory_summary().lower()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total


def test_a_snapshot_adds_up_and_names_blocks():
    block = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    segments = torch.cuda.memory_snapshot()
    assert sum(s["total_size"] for s in segments) == torch.cuda.memory_reserved()
    assert sum(s["allocated_size"] for s in segments) == torch.cuda.memory_allocated()
    found = [
        b for s in segments for b in s["blocks"]
        if b["address"] == block.data_ptr() and b["state"] == "active_allocated"
    ]
    assert [b["requested_size"] for b in found] == [5 * MIB]


def recorded(tmp_path):
    torch.cuda.memory._record_memory_history(max_entries=1000)
    kept = torch.zeros(4 * MIB, dtype=torch.uint8, device="cuda")
    gone = torch.zeros(2 * MIB, dtype=torch.uint8, device="cuda")
    address = gone.data_ptr()
    del gone
    path = os.path.join(tmp_path, "snapshot.pickle")
    torch.cuda.memory._dump_snapshot(path)
    torch.cuda.memory._record_memory_history(enabled=None)
    return kept, address, path


def test_history_has_events_with_stacks(tmp_path):
    kept, address, path = recorded(tmp_path)
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    events = snapshot["device_traces"][0]
    blocks_own = [e for e in events if not e["action"].startswith("segment_")]
    assert [e["action"] for e in blocks_own if e["addr"] == address] == [
        "alloc", "free_requested", "free_completed"
    ]
    made = next(e for e in events if e["action"] == "alloc" and e["addr"] == kept.data_ptr())
    assert made["size"] == 4 * MIB
    assert any(frame["name"] == "recorded" for frame in made["frames"])
    assert events == sorted(events, key=lambda e: e["time_us"])
    blocks = [b for s in snapshot["segments"] for b in s["blocks"]]
    assert any(b["frames"] for b in blocks if b["address"] == kept.data_ptr())


def frames_of(block):
    blocks = [b for s in torch.cuda.memory_snapshot() for b in s["blocks"]]
    return next((b["frames"] for b in blocks if b["address"] == block and b["state"] == "active_allocated"), None)


def test_a_living_block_keeps_its_stack_when_recording_ends(tmp_path):
    kept, address, _ = recorded(tmp_path)
    assert any(frame["name"] == "recorded" for frame in frames_of(kept.data_ptr()))
    later = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    assert frames_of(later.data_ptr()) == []
    place = kept.data_ptr()
    del kept
    again = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    assert again.data_ptr() == place and frames_of(place) == []


def test_history_has_what_became_of_memory():
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    kept = torch.zeros(40 * MIB, dtype=torch.uint8, device="cuda")
    for step in range(50):  # pages move, as each is larger than what the last one leaves
        large = torch.zeros((20 + 3 * step) * MIB, dtype=torch.uint8, device="cuda")
        fence = torch.zeros(2 * MIB, dtype=torch.uint8, device="cuda")
        del large
    del fence
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    events = snapshot["device_traces"][0]
    memory = set()
    for event in events:
        units = range(event["addr"], event["addr"] + event["size"], 2 * MIB)
        if event["action"] in ("segment_map", "segment_alloc"):
            assert memory.isdisjoint(units)
            memory.update(units)
        elif event["action"] in ("segment_unmap", "segment_free"):
            memory.difference_update(units)  # what was there before is not known
    assert kept.data_ptr() // (2 * MIB) * (2 * MIB) in memory
    there = set()
    for segment in snapshot["segments"]:
        begin = segment["address"] // (2 * MIB) * (2 * MIB)
        there.update(range(begin, segment["address"] + segment["total_size"], 2 * MIB))
    assert memory <= there
    mapped = [event for event in events if event["action"] == "segment_map"]
    assert any(
        frame["name"] == "test_history_has_what_became_of_memory"
        for event in mapped for frame in event["frames"]
    )


def test_a_free_is_completed_when_other_streams_are_done():
    side = torch.cuda.Stream()
    torch.cuda.memory._record_memory_history(max_entries=1000)
    used = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    address = used.data_ptr()
    with torch.cuda.stream(side):
        torch.cuda._sleep(500_000_000)
    used.record_stream(side)
    del used
    during = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    after = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    events = [(e["action"], e["addr"]) for e in torch.cuda.memory._snapshot()["device_traces"][0]
              if not e["action"].startswith("segment_")]
    torch.cuda.memory._record_memory_history(enabled=None)
    assert events == [("alloc", address), ("free_requested", address), ("alloc", during.data_ptr()),
                      ("free_completed", address), ("alloc", after.data_ptr())]


def test_pytorchs_viewers_take_the_snapshot(tmp_path):
    from torch.cuda import _memory_viz

    kept, _, path = recorded(tmp_path)
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    assert "<script" in _memory_viz.segment_plot(snapshot)
    assert "<script" in _memory_viz.trace_plot(snapshot)
    assert "segment_map" in _memory_viz.trace(snapshot)
    assert _memory_viz.segsum(snapshot)
    del kept


def test_cistern_replay_reads_the_snapshot(tmp_path):
    from cistern import _places

    command = _places.command()
    if command is None:
        pytest.skip("the command is not built")
    kept, _, path = recorded(tmp_path)
    ran = subprocess.run(
        [str(command), "replay", path, "--device", "sim", "--json"],
        capture_output=True, text=True, check=False,
    )
    assert ran.returncode == 0, ran.stderr
    del kept


def test_skipped_actions_are_not_recorded():
    torch.cuda.memory._record_memory_history(max_entries=100, skip_actions=["free_completed"])
    torch.zeros(MIB, device="cuda")
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    actions = {event["action"] for event in events}
    assert "alloc" in actions and "free_requested" in actions
    assert "free_completed" not in actions


def test_the_profiler_sees_memory():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    assert any(event.self_device_memory_usage == 3 * MIB for event in profiled.events())


def test_the_profiler_is_told_as_much_of_a_free_as_of_its_allocation():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        torch.empty(1001, dtype=torch.uint8, device="cuda")
    told = [event.self_device_memory_usage for event in profiled.events()]
    assert any(told) and sum(told) == 0


def test_a_snapshot_is_an_event_of_the_next_one():
    torch.cuda.memory._record_memory_history(max_entries=100)
    kept = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    active = torch.cuda.memory_stats()["active_bytes.all.current"]
    first = torch.cuda.memory._snapshot()["device_traces"][0]
    second = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    assert all(event["action"] != "snapshot" for event in first)
    assert [e["size"] for e in second if e["action"] == "snapshot"] == [active]
    del kept


def test_what_empty_cache_gives_back_has_its_stack():
    torch.cuda.memory._record_memory_history(max_entries=10_000)
    block = torch.empty(40 * MIB, dtype=torch.uint8, device="cuda")
    del block
    torch.cuda.empty_cache()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    given = [e for e in events if e["action"] in ("segment_unmap", "segment_free")]
    assert any(
        frame["name"] == "test_what_empty_cache_gives_back_has_its_stack"
        for event in given for frame in event["frames"]
    )


@pytest.mark.skipif(not hasattr(torch.cuda.memory, "_set_memory_metadata"), reason="since 2.10")
def test_an_event_has_the_text_that_was_set_when_it_happened():
    torch.cuda.memory._set_memory_metadata("a phase")
    torch.cuda.memory._record_memory_history()
    try:
        block = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
        del block
        torch.cuda.empty_cache()
        torch.cuda.memory._set_memory_metadata("")
        events = torch.cuda.memory._snapshot()["device_traces"][0]
    finally:
        torch.cuda.memory._record_memory_history(None)
        torch.cuda.memory._set_memory_metadata("")
    assert {event["user_metadata"] for event in events} == {"a phase"}


def test_a_checkpoint_that_is_restored_is_in_the_history():
    native, pool = torch._C, torch.cuda.graph_pool_handle()
    native._cuda_beginAllocateToPool(0, pool)
    kept = native._cuda_cudaCachingAllocator_raw_alloc(5 << 20, 0)
    state = native._cuda_getCheckpointState(0, pool)
    torch.cuda.memory._record_memory_history()
    try:
        native._cuda_cudaCachingAllocator_raw_delete(kept)
        dropped = native._cuda_cudaCachingAllocator_raw_alloc(9 << 20, 0)
        native._cuda_setCheckpointPoolState(0, state, [], [])
        trace = native._cuda_memorySnapshot(None)
        events = [(e["action"], e["addr"], e["size"]) for e in trace["device_traces"][0]
                  if e["action"] in ("alloc", "free_requested")]
        assert events[-2:] == [("free_requested", dropped, 9 << 20), ("alloc", kept, 5 << 20)]
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
        native._cuda_endAllocateToPool(0, pool)
        native._cuda_cudaCachingAllocator_raw_delete(kept)
        native._cuda_releasePool(0, pool)


def test_without_pytorchs_caching_each_block_is_the_drivers(run):
    status, out, err = run("""
import torch
x = torch.ones(1000, device="cuda")
print(int(x.sum()), torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
""", environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
    assert status == 0 and out.split() == ["1000", "0", "0"], err


RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])


@pytest.mark.skipif(RELEASE < (2, 14), reason="blocks have no notes before 2.14")
def test_a_note_on_a_tensor_is_an_event():
    assert torch._C._cuda_memoryMetadataSupported()
    torch.cuda.memory._record_memory_history(max_entries=100, clear_history=True)
    try:
        held = torch.empty(2 * MIB, dtype=torch.uint8, device="cuda")
        torch.cuda.memory._annotate_tensor(held[MIB:], "the second half")
        events = torch.cuda.memory._snapshot()["device_traces"][0]
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    notes = [event for event in events if event["action"] == "annotate"]
    assert [(note["addr"], note["user_metadata"]) for note in notes] == [(held.data_ptr(), "the second half")]
    with pytest.raises(RuntimeError, match="no block of ours"):
        torch._C._cuda_annotateMemory(4096, "nothing lies there")


@pytest.mark.skipif(RELEASE < (2, 12), reason="blocks have no stacks of their own before 2.12")
def test_the_stack_of_a_block():
    torch.cuda.memory._record_memory_history(max_entries=100)
    try:
        held = torch.empty(2 * MIB, dtype=torch.uint8, device="cuda")
        frames = torch.cuda.memory._allocation_traceback(held.data_ptr())
        assert any(frame["name"] == "test_the_stack_of_a_block" for frame in frames)
        assert torch.cuda.memory._allocation_traceback(held.data_ptr() + 512) is None
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)


@pytest.mark.skipif(RELEASE < (2, 12), reason="requests are not rejected before 2.12")
def test_the_limit_rejects_if_the_setting_says_so(limit):
    limit(64 * MIB)
    before = torch.cuda.memory_stats()
    for rejects in (False, True):
        torch._C._accelerator_setAllocatorSettings(f"throw_on_cudamalloc_oom:{rejects}")
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1024 * MIB, dtype=torch.uint8, device="cuda")
    torch._C._accelerator_setAllocatorSettings("throw_on_cudamalloc_oom:False")
    now = torch.cuda.memory_stats()
    assert now["num_oom_rejections"] - before["num_oom_rejections"] == 1
    assert now["num_ooms"] - before["num_ooms"] == 1


@pytest.mark.skipif(RELEASE < (2, 13), reason="pools have no statistics before 2.13")
def test_what_each_pool_reserves():
    pool = torch.cuda.MemPool()
    key = "reserved_bytes_by_private_pools.{}_{}.all.".format(*pool.id)
    with torch.cuda.use_mem_pool(pool):
        held = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
    stats = torch.cuda.memory_stats()
    assert stats[key + "current"] >= 8 * MIB and stats[key + "peak"] == stats[key + "current"]
    most = stats[key + "peak"]
    del held, pool
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    stats = torch.cuda.memory_stats()
    assert [stats[key + each] for each in ("current", "peak", "freed")] == [0, most, most]
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.memory_stats().get(key + "peak", 0) == 0
