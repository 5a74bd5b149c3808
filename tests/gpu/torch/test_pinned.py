"""pin_memory() from Cistern's pinned allocator."""

import gc

import pytest
import torch

MIB = 1 << 20


def figures():
    stats = torch.cuda.host_memory_stats()
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return {
        "reserved": stats["reserved_bytes.current" if release < (2, 10) else "allocated_bytes.current"],
        "peak": stats["reserved_bytes.peak" if release < (2, 10) else "allocated_bytes.peak"],
        "pinned": stats["num_host_alloc"],
    }


@pytest.fixture(autouse=True)
def empty():
    torch.zeros(1, device="cuda")
    gc.collect()
    torch.cuda.synchronize()
    torch._C._host_emptyCache()
    torch.cuda.reset_peak_host_memory_stats()


def test_sizes_are_exact():
    before = figures()["reserved"]
    held = torch.empty(33 * MIB, dtype=torch.uint8, pin_memory=True)
    assert held.is_pinned()
    assert 33 * MIB <= figures()["reserved"] - before <= 35 * MIB  # PyTorch's own takes 64 MiB
    del held
    torch._C._host_emptyCache()
    assert figures()["reserved"] == before


def test_what_is_freed_is_used_again():
    for _ in range(3):
        torch.ones(5 * MIB, dtype=torch.uint8).pin_memory()
    pinned = figures()["pinned"]
    for _ in range(20):
        torch.ones(5 * MIB, dtype=torch.uint8).pin_memory()
    assert figures()["pinned"] == pinned


@pytest.mark.parametrize("own_stream", [False, True])
def test_a_copy_under_way_keeps_its_memory(own_stream):
    stream = torch.cuda.Stream() if own_stream else torch.cuda.default_stream()
    wanted, got = [], []
    for step in range(50):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(2_000_000)
            source = torch.full((MIB,), step, dtype=torch.int32).pin_memory()
            got.append(source.to("cuda", non_blocking=True))
            wanted.append(step)
        del source
    torch.cuda.synchronize()
    assert [int(t[0]) for t in got] == wanted and [int(t[-1]) for t in got] == wanted


def test_copies_from_the_device():
    torch.cuda._sleep(10_000_000)
    on_device = torch.arange(4 * MIB, device="cuda", dtype=torch.int32)
    to = torch.empty(4 * MIB, dtype=torch.int32, pin_memory=True)
    to.copy_(on_device, non_blocking=True)
    torch.cuda.synchronize()
    assert torch.equal(to, on_device.cpu())


def test_data_loaders_pin():
    data = torch.utils.data.TensorDataset(torch.arange(4096.0).reshape(256, 16))
    loader = torch.utils.data.DataLoader(data, batch_size=16, num_workers=2, pin_memory=True)
    total = 0.0
    for (batch,) in loader:
        assert batch.is_pinned()
        total += float(batch.to("cuda", non_blocking=True).sum())
    assert total == 4096 * 4095 / 2


def test_a_graph_keeps_the_host_memory_that_it_copies_from():
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    to = torch.zeros(MIB, dtype=torch.int32, device="cuda")
    with torch.cuda.graph(graph, stream=stream):
        source = torch.empty(MIB, dtype=torch.int32, pin_memory=True)
        source.fill_(7)
        to.copy_(source, non_blocking=True)
        if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 11):
            del source  # it is the graph's, as under PyTorch's own
    others = [torch.full((MIB,), -1, dtype=torch.int32).pin_memory() for _ in range(8)]
    for _ in range(10):
        to.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert bool((to == 7).all())
    del graph, others


def test_memory_of_a_graph_is_given_back_with_it():
    before = figures()["reserved"]
    graph = torch.cuda.CUDAGraph()
    to = torch.zeros(4 * MIB, dtype=torch.int32, device="cuda")
    with torch.cuda.graph(graph):
        source = torch.empty(4 * MIB, dtype=torch.int32, pin_memory=True)
        to.copy_(source, non_blocking=True)
        del source
    graph.replay()
    graph.reset()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch._C._host_emptyCache()
    assert figures()["reserved"] == before


def test_peaks_are_told_and_reset():
    torch.empty(40 * MIB, dtype=torch.uint8, pin_memory=True)
    assert figures()["peak"] >= 40 * MIB
    gc.collect()
    torch._C._host_emptyCache()
    torch.cuda.reset_peak_host_memory_stats()
    assert figures()["peak"] == figures()["reserved"]


def test_an_empty_tensor_is_pinned_and_needs_no_memory():
    assert torch.empty(0).pin_memory().numel() == 0


def test_a_capture_uses_again_what_no_copy_has_used():
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 11):
        pytest.skip("no pinned memory of graphs")
    graph = torch.cuda.CUDAGraph()
    to = torch.zeros(MIB, dtype=torch.int32, device="cuda")
    with torch.cuda.graph(graph):
        first = torch.empty(MIB, dtype=torch.int32, pin_memory=True)
        address = first.data_ptr()
        del first
        second = torch.empty(MIB, dtype=torch.int32, pin_memory=True)
        assert second.data_ptr() == address
        to.copy_(second, non_blocking=True)
        del second
        third = torch.empty(MIB, dtype=torch.int32, pin_memory=True)
        assert third.data_ptr() != address
    del graph, third


# ---- History and snapshot ------------------------------------------------------------------------------

RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])


@pytest.mark.skipif(RELEASE < (2, 14), reason="pinned memory has no history before 2.14")
def test_history_and_snapshot_have_pinned_memory():
    torch.cuda.memory._record_memory_history(record_pinned_host_memory=True, record_cuda=False, clear_history=True)
    try:
        held = torch.empty(3 * MIB, dtype=torch.uint8, pin_memory=True)
        gone = torch.empty(4096, dtype=torch.uint8, pin_memory=True)
        address = gone.data_ptr()
        del gone
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(None)
    segments = {segment["address"]: segment for segment in snapshot["host_segments"]}
    assert sum(segment["total_size"] for segment in segments.values()) == figures()["reserved"]
    assert segments[held.data_ptr()]["allocated_size"] == 3 * MIB
    actions = [entry["action"] for entry in snapshot["host_traces"] if entry["addr"] == address]
    assert actions == ["alloc", "free_requested", "free_completed"]
    made = next(entry for entry in snapshot["host_traces"] if entry["addr"] == held.data_ptr())
    assert any(frame["name"] == "test_history_and_snapshot_have_pinned_memory" for frame in made["frames"])
