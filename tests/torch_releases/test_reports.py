"""Snapshots, history, metadata."""

import pickle
import re

import pytest
import torch
from conftest import run_alone

MIB = 1 << 20
memory = torch.cuda.memory


def block(bytes_wanted):
    return torch.empty(bytes_wanted, dtype=torch.uint8, device="cuda")


@pytest.fixture
def recording():
    memory._record_memory_history(max_entries=1000)
    yield
    memory._record_memory_history(enabled=None)


def events(address=None):
    of_blocks = [e for e in memory._snapshot()["device_traces"][0] if not e["action"].startswith("segment_")]
    return [e for e in of_blocks if address in (None, e.get("addr"))]


def test_a_snapshot_adds_up():
    held = block(5 * MIB)
    segments = torch.cuda.memory_snapshot()
    assert sum(s["total_size"] for s in segments) == torch.cuda.memory_reserved()
    assert sum(s["allocated_size"] for s in segments) == torch.cuda.memory_allocated()
    sizes = [b["requested_size"] for s in segments for b in s["blocks"] if b["address"] == held.data_ptr()]
    assert sizes == [5 * MIB]


def test_history_has_a_blocks_life(recording, tmp_path):
    assert torch._C._cuda_isHistoryEnabled()
    held = block(4 * MIB)
    address = held.data_ptr()
    del held
    memory._dump_snapshot(tmp_path / "snapshot.pickle")
    with open(tmp_path / "snapshot.pickle", "rb") as file:
        trace = pickle.load(file)["device_traces"][0]
    life = [e for e in trace if e.get("addr") == address and not e["action"].startswith("segment_")]
    assert [e["action"] for e in life] == ["alloc", "free_requested", "free_completed"]
    assert life[0]["size"] == 4 * MIB
    assert any(frame["name"] == "test_history_has_a_blocks_life" for frame in life[0]["frames"])


def test_history_is_off_when_it_is_switched_off(recording):
    memory._record_memory_history(enabled=None)
    assert not torch._C._cuda_isHistoryEnabled()
    before = len(events())
    block(MIB)
    assert len(events()) == before


def test_history_names_requests_that_failed(recording):
    with pytest.raises(torch.OutOfMemoryError):
        block(1 << 40)
    assert [e["size"] for e in events() if e["action"] == "oom"] == [1 << 40]


@pytest.mark.since(11)
def test_history_leaves_out_skipped_actions():
    memory._record_memory_history(max_entries=1000, skip_actions=["free_requested"])
    try:
        block(MIB)
        actions = {e["action"] for e in events()}
    finally:
        memory._record_memory_history(enabled=None)
    assert "alloc" in actions and "free_requested" not in actions


def test_a_compiled_regions_name_is_on_its_events():
    memory._record_memory_history(max_entries=1000, compile_context=True)
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):  # or nothing names the region
            with torch._C._profiler._RecordFunctionFast("Torch-Compiled Region: 3/1"):
                inside = block(MIB)
        outside = block(MIB)
        contexts = [events(held.data_ptr())[0]["compile_context"] for held in (inside, outside)]
    finally:
        memory._record_memory_history(enabled=None)
    assert contexts == ["Torch-Compiled Region: 3/1", "N/A"]


def test_a_named_range_of_the_program_is_in_the_snapshot():
    memory._record_memory_history(max_entries=1000, global_record_annotations=True)
    try:
        with torch.autograd.profiler.record_function("## forward ##"):
            block(MIB)
        names = [note["name"] for note in memory._snapshot()["external_annotations"]]
    finally:
        memory._record_memory_history(enabled=None)
    assert names.count("## forward ##") == 2  # its begin and its end


@pytest.mark.since(10)
def test_metadata_of_the_thread_is_on_its_events(recording):
    memory._set_memory_metadata("phase one")
    try:
        assert memory._get_memory_metadata() == "phase one"
        held = block(MIB)
    finally:
        memory._set_memory_metadata("")
    assert [e["user_metadata"] for e in events(held.data_ptr())] == ["phase one"]


@pytest.mark.since(12)
def test_a_block_has_its_traceback(recording):
    held = block(MIB)
    frames = memory._allocation_traceback(held.data_ptr())
    assert any(frame["name"] == "test_a_block_has_its_traceback" for frame in frames)
    assert memory._allocation_traceback(held.data_ptr() + 1) is None


@pytest.mark.since(14)
def test_a_note_on_a_tensor_is_an_event(recording):
    assert memory._memory_metadata_supported()
    held = block(2 * MIB)
    memory._annotate_tensor(held[100:], "saved for backward")
    notes = [e for e in events(held.data_ptr()) if e["action"] == "annotate"]
    assert [e["user_metadata"] for e in notes] == ["saved for backward"]
    host = torch.empty(10)
    with pytest.raises(RuntimeError):
        torch._C._cuda_annotateMemory(host.data_ptr(), "no block")


def test_history_is_switched_on_by_its_older_arguments():
    memory._record_memory_history(True, trace_alloc_max_entries=100, trace_alloc_record_context=True)
    try:
        held = block(MIB)
        assert events(held.data_ptr())[0]["action"] == "alloc"
    finally:
        memory._record_memory_history(False)


@pytest.mark.since(14)
def test_history_has_pinned_memory():
    memory._record_memory_history(max_entries=1000, record_pinned_host_memory=True)
    try:
        held = torch.empty(3 * MIB, dtype=torch.uint8, pin_memory=True)
        address = held.data_ptr()
        segments = memory._snapshot()["host_segments"]
        del held
        trace = [e for e in memory._snapshot()["host_traces"] if e["addr"] == address]
    finally:
        memory._record_memory_history(enabled=None)
    assert any(s["address"] <= address < s["address"] + s["total_size"] for s in segments)
    assert [e["action"] for e in trace if not e["action"].startswith("segment_")][:2] == ["alloc", "free_requested"]


@pytest.mark.since(14)
def test_history_has_memory_that_the_program_pins_itself():
    memory._record_memory_history(max_entries=1000, record_pinned_host_memory=True)
    host = torch.empty(4 * MIB, dtype=torch.uint8)
    runtime = torch.cuda.cudart()
    try:
        torch.cuda.check_error(runtime.cudaHostRegister(host.data_ptr(), 4 * MIB, 0))
        torch.cuda.check_error(runtime.cudaHostUnregister(host.data_ptr()))
        trace = [e["action"] for e in memory._snapshot()["host_traces"] if e["addr"] == host.data_ptr()]
    finally:
        memory._record_memory_history(enabled=None)
    assert trace == ["segment_alloc", "alloc", "free_requested", "free_completed", "segment_free"]


SCRIPT = """
import os, tempfile, torch
def held(mib, device):
    return torch.empty(mib << 20, dtype=torch.uint8, device=device)
held(64, "cuda:1")
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats(1)
torch.cuda.reset_accumulated_memory_stats(1)
try:
    held(1 << 20, "cuda:0")
except torch.OutOfMemoryError:
    held(8, "cuda:0")
print(*os.listdir(tempfile.gettempdir()))
"""


@pytest.mark.parametrize("option", ["", "--compare"])
def test_a_script_is_told_what_it_used_whatever_was_reset_and_is_recorded_for_a_comparison(tmp_path, option):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "tmp").mkdir()
    arguments = ["cistern.torch", *option.split(), str(tmp_path / "script.py")]
    out, err = run_alone(f"import runpy, sys\nsys.argv = {arguments}\n"
                         "runpy.run_module('cistern.torch', run_name='__main__')", TMPDIR=str(tmp_path / "tmp"))
    assert out.startswith("cistern-") == ("PyTorch, expandable segments" in err) == bool(option)
    assert re.match(r"cistern.torch: the script's process requested 64.00 MiB at the peak on cuda:1, the fullest of 2 "
                    r"GPUs, and Cistern reserved (64|66|68)\.00 MiB\n"
                    r"cistern.torch: Cistern took memory from the driver [1-9]\d* times, gave some back [1-9]\d* times? "
                    r"and moved \d+ pages?, in \d\.\d{3} s; \d requests? waited for that, and 1 failed for lack of memory\n", err)
    assert option or len(err.splitlines()) == 3
