"""CUDA graphs: what they compute, and whether their memory is given back."""

import gc

import torch

MIB = 1 << 20


def reserved():
    gc.collect()
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()


def test_a_graph_computes_the_same_over_a_thousand_replays_beside_eager_work():
    static = torch.zeros(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        (static * 2 + 1).sum()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        scratch = static * 2
        result = (scratch + 1).clone()
        del scratch
    for step in range(1000):
        static.fill_(step)
        graph.replay()
        noise = [torch.full((257, 1023), -1.0, device="cuda") for _ in range(step % 7)]
        if step % 50 == 0:
            torch.cuda.empty_cache()
            assert (result == 2 * step + 1).all().item()
        del noise


def test_memory_of_a_graph_is_given_back_with_it():
    before = reserved()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        block = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
        block.fill_(1)
        del block
    graph.replay()
    assert reserved() - before >= 64 * MIB
    del graph
    assert reserved() <= before


def test_twenty_graphs_of_one_pool_take_what_the_largest_takes():
    pool = torch.cuda.graph_pool_handle()
    before = reserved()
    graphs = []
    for size in range(1, 21):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            block = torch.ones(size * 2 * MIB, dtype=torch.uint8, device="cuda")
            del block
        graphs.append(graph)
    for graph in graphs:
        graph.replay()
    assert reserved() - before <= 50 * MIB  # 40 for the largest; one each: 420
    graphs.clear()
    del graph
    assert reserved() <= before


def test_make_graphed_callables_trains_as_eager():
    def losses(graphed):
        torch.manual_seed(3)
        model = torch.nn.Sequential(
            torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8)
        ).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(64, 256, device="cuda"), torch.randn(64, 8, device="cuda")
        called = torch.cuda.make_graphed_callables(model, (x.clone(),)) if graphed else model
        result = []
        for _ in range(100):
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.mse_loss(called(x), y)
            loss.backward()
            optimizer.step()
            result.append(loss.item())
        return result

    assert losses(True) == losses(False)


def test_streams_that_join_a_capture_are_captured():
    side = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    x = torch.arange(1 << 16, device="cuda", dtype=torch.float32)
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            a = x * 3
        torch.cuda.current_stream().wait_stream(side)
        a.record_stream(torch.cuda.current_stream())
        b = a + 1
        del a
        c = torch.empty(1 << 16, device="cuda").copy_(b)
    eager = [torch.full((1 << 16,), -1.0, device="cuda") for _ in range(16)]
    for _ in range(100):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(c, x * 3 + 1) and torch.equal(b, c)
    assert all((block == -1).all().item() for block in eager)


# In a process of its own: PyTorch's generators, too, go on as if such a capture were under way.
FAILS = """
import gc, torch

MIB = 1 << 20

def reserved():
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()

def failed_capture(bytes, pool=None):
    outside = torch.cuda.current_stream()
    side, spare = torch.cuda.Stream(), torch.zeros(1, device="cuda")
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph(), pool=pool):
            if bytes:
                torch.ones(bytes, dtype=torch.uint8, device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                spare.zero_()  # which nobody waits for: the capture cannot end
        raise SystemExit("the capture should have failed")
    except RuntimeError:
        torch.cuda.set_stream(outside)

torch.ones(1, device="cuda")
with torch.cuda.graph(torch.cuda.CUDAGraph()):  # what PyTorch keeps for the graphs of a process
    torch.ones(1, device="cuda")
before = reserved()
"""


def test_a_capture_that_fails_leaves_the_allocator_usable(run):
    status, _, err = run("""
import torch

graph = torch.cuda.CUDAGraph()
try:
    with torch.cuda.graph(graph):
        torch.empty(1 << 20, device="cuda").fill_(1)
        torch.cuda.synchronize()  # forbidden here
    raise SystemExit("the capture should have failed")
except RuntimeError:
    pass
del graph
assert torch.ones(1000, device="cuda").sum().item() == 1000
""")
    assert status == 0, err


def test_a_capture_that_fails_keeps_no_memory(run):
    status, _, err = run(FAILS + """
for pool in (None, torch.cuda.graph_pool_handle()):
    failed_capture(64 * MIB, pool)
    assert reserved() <= before, torch.cuda.memory_summary()
""")
    assert status == 0, err


def test_graphs_give_their_memory_back_after_a_capture_has_failed(run):
    status, _, err = run(FAILS + """
failed_capture(64 * MIB)
failed_capture(0)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    block = torch.ones(64 * MIB, dtype=torch.uint8, device="cuda")
    del block
graph.replay()
del graph
assert reserved() <= before, torch.cuda.memory_summary()
""")
    assert status == 0, err


def test_a_pool_is_captured_into_again_after_a_capture_into_it_has_failed(run):
    status, _, err = run(FAILS + """
pool = torch.cuda.graph_pool_handle()
failed_capture(64 * MIB, pool)
graph = torch.cuda.CUDAGraph()
x = torch.ones(MIB, device="cuda")
with torch.cuda.graph(graph, pool=pool):
    y = x + 1
x.fill_(4)
eager = torch.zeros(MIB, device="cuda")
graph.replay()
assert (y == 5).all().item() and (eager == 0).all().item()
del graph, x, y, eager
assert reserved() <= before, torch.cuda.memory_summary()
""")
    assert status == 0, err
