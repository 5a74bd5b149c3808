"""CUDA graphs: captures, and whose memory it is."""

import gc

import pytest
import torch

MIB = 1 << 20


def block(bytes_wanted):
    return torch.empty(bytes_wanted, dtype=torch.uint8, device="cuda")


def reserved():
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()


@pytest.fixture(scope="module", autouse=True)
def once():
    """What PyTorch keeps for the graphs of a process."""
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        block(1).fill_(1)


def test_a_graphs_memory_goes_with_it():
    before = reserved()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        inside = block(64 * MIB)
        inside.fill_(1)
        del inside
    graph.replay()
    assert reserved() - before >= 64 * MIB
    assert torch.cuda.memory_snapshot(graph.pool()) != []
    graph.reset()
    del graph
    assert reserved() <= before


def test_graphs_of_one_pool_share_memory():
    pool = torch.cuda.graph_pool_handle()
    before = reserved()
    graphs = []
    for size in range(1, 11):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            inside = block(2 * size * MIB)
            inside.fill_(1)
            del inside
        graphs.append(graph)
    assert reserved() - before <= 30 * MIB  # 20 for the largest; one each: 110
    graphs.clear()
    del graph
    assert reserved() <= before


def test_a_captured_copy_moves_what_is_there_at_each_replay():
    source, target = torch.zeros(1000, device="cuda"), torch.empty(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        target.copy_(source)
    for value in (1.0, 2.0):
        source.copy_(torch.full((1000,), value))
        graph.replay()
        assert torch.equal(target.cpu(), torch.full((1000,), value))


def test_streams_that_join_a_capture_allocate_into_its_pool():
    side = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            inside = block(4 * MIB)
            inside.fill_(1)
        torch.cuda.current_stream().wait_stream(side)
        inside.record_stream(torch.cuda.current_stream())
        address = inside.data_ptr()
        del inside
    segments = torch.cuda.memory_snapshot(graph.pool())
    assert any(s["address"] <= address < s["address"] + s["total_size"] for s in segments)


def test_a_capture_that_fails_leaves_the_allocator_usable():
    outside = torch.cuda.current_stream()
    with pytest.raises(RuntimeError):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            block(MIB).fill_(1)
            torch.cuda.synchronize()  # forbidden here
    torch.cuda.set_stream(outside)
    assert block(MIB).numel() == MIB


@pytest.mark.since(11)
def test_a_graph_keeps_pinned_memory_that_it_copies_from():
    target = torch.empty(4096, dtype=torch.uint8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        source = torch.empty(4096, dtype=torch.uint8, pin_memory=True)
        source.fill_(7)
        target.copy_(source, non_blocking=True)
        del source
    other = torch.empty(4096, dtype=torch.uint8, pin_memory=True)
    other.fill_(9)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(target.cpu(), torch.full((4096,), 7, dtype=torch.uint8))
