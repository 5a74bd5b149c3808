"""The history of memory where the program changes or begins it late."""

import os
import threading

import pytest
import torch

from conftest import run_alone

MIB = 1 << 20
memory = torch.cuda.memory


def block(bytes_wanted):
    return torch.empty(bytes_wanted, dtype=torch.uint8, device="cuda")


@pytest.fixture(autouse=True)
def off_at_the_end():
    yield
    memory._record_memory_history(enabled=None)


# Alone, as the allocator knows all blocks once a tracker is attached.
def test_a_block_from_before_the_recording_has_its_figures():
    out, _ = run_alone("""
cistern.torch.enable("native")
memory = torch.cuda.memory
pool, side = torch.cuda.MemPool(), torch.cuda.Stream()
with torch.cuda.use_mem_pool(pool), torch.cuda.stream(side):
    held = torch.empty((5 << 20) + 3, dtype=torch.uint8, device="cuda")
address = held.data_ptr()
memory._record_memory_history(max_entries=1000)
if hasattr(memory, "_annotate_tensor"):
    memory._annotate_tensor(held, "early")
del held
life = [e for e in memory._snapshot()["device_traces"][0]
        if e.get("addr") == address and not e["action"].startswith("segment_")]
print(*(e["action"] for e in life[-2:]))
print(all((e["size"], e["stream"], e.get("pool_id", pool.id)) == ((5 << 20) + 3, side.cuda_stream, pool.id)
          for e in life))
""")
    assert out.split() == ["free_requested", "free_completed", "True"]


@pytest.mark.since(14)
def test_a_pinned_block_from_before_the_recording_has_its_size():
    held = torch.empty(3 * MIB, dtype=torch.uint8, pin_memory=True)
    address = held.data_ptr()
    memory._record_memory_history(max_entries=1000, record_pinned_host_memory=True)
    del held
    events = [e for e in memory._snapshot()["host_traces"] if e["addr"] == address]
    assert [(e["action"], e["size"]) for e in events] == [("free_requested", 3 * MIB), ("free_completed", 3 * MIB)]


def sizes():
    return [e["size"] for e in memory._snapshot()["device_traces"][0] if e["action"] == "alloc"]


def test_another_number_of_entries_keeps_the_newest():
    memory._record_memory_history(max_entries=10)
    kept = [block(number * MIB) for number in range(1, 21)]
    before = sizes()
    assert before == [number * MIB for number in range(21 - len(before), 21)] != []
    memory._record_memory_history(max_entries=11)
    assert sizes() in (before, before[1:])  # the snapshot is an event, too
    kept.append(block(21 * MIB))
    memory._record_memory_history(max_entries=1000)
    kept.append(block(22 * MIB))
    assert sizes()[-3:] == [20 * MIB, 21 * MIB, 22 * MIB]
    memory._record_memory_history(max_entries=3)
    assert sizes() == [22 * MIB]  # then two snapshots
    memory._record_memory_history(max_entries=1000, clear_history=True)
    assert sizes() == []


@pytest.mark.since(11)
def test_an_action_that_is_none_is_not_skipped():
    with pytest.raises(RuntimeError, match="Unknown TraceEntry action: bogus"):
        memory._record_memory_history(max_entries=1000, skip_actions=["bogus"])
    assert not torch._C._cuda_isHistoryEnabled()


@pytest.mark.since(10)
def test_a_threads_text_goes_with_the_thread():
    def resident():
        with open("/proc/self/statm", encoding="ascii") as pages:
            return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def run_threads(count):
        for _ in range(count):
            thread = threading.Thread(target=memory._set_memory_metadata, args=("text" * MIB,))
            thread.start()
            thread.join()

    run_threads(4)
    before = resident()
    run_threads(50)  # of 4 MiB each
    assert resident() - before < 100 * MIB


def test_a_child_of_fork_records_if_its_parent_has_not_used_the_device():
    out, _ = run_alone("""
cistern.torch.enable("native")
child = os.fork()
if child == 0:
    torch.cuda.memory._record_memory_history(max_entries=100)
    held = torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
    address = held.data_ptr()
    del held
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    print(*(e["action"] for e in trace if e["addr"] == address and not e["action"].startswith("segment_")), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""")
    assert out.split() == ["alloc", "free_requested", "free_completed"]
