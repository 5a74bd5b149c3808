"""Tensors and optimizers' states in the host's memory."""

import gc

import cistern.torch
import pytest
import torch
from cistern.torch import _host_memory
from conftest import in_host

MIB = 1 << 20


def free():
    torch.cuda.synchronize()
    return torch.cuda.mem_get_info()[0]


def states_of(optimizer):
    return [value for state in optimizer.state.values() for value in state.values()
            if isinstance(value, torch.Tensor) and value.is_cuda and value.numel() > 1]


def parameters(count=3, size=MIB):
    made = [torch.nn.Parameter(torch.zeros(size, device="cuda")) for _ in range(count)]
    for each in made:
        each.grad = torch.ones_like(each)
    return made


def test_host_memory_takes_nothing_of_the_device():
    torch.cuda.empty_cache()
    before, reserved = free(), torch.cuda.memory_reserved()
    with cistern.torch.host_memory():
        host = torch.full((64 * MIB,), 7, dtype=torch.uint8).cuda()
    assert in_host(host)
    assert free() == before and torch.cuda.memory_reserved() == reserved
    assert bool((host.cpu() == 7).all())
    device = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    assert not in_host(device)


def test_free_host_memory_serves_again_and_is_in_no_picture_of_the_device():
    with cistern.torch.host_memory():
        first = torch.empty(20 * MIB, dtype=torch.uint8, device="cuda")
        kept = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    del first
    segments = torch.cuda.memory_snapshot()
    assert sum(each["total_size"] for each in segments) == torch.cuda.memory_reserved()
    with cistern.torch.host_memory():
        again = torch.empty(16 * MIB, dtype=torch.uint8, device="cuda")
    assert in_host(kept) and in_host(again)


def test_host_memory_may_be_entered_within_itself_and_again():
    with cistern.torch.host_memory():
        first = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
        with cistern.torch.host_memory():
            second = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
        third = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    with cistern.torch.host_memory("cuda:1"):
        fourth = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda:1")
        here = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda:0")
    assert all(map(in_host, (first, second, third, fourth)))
    assert not in_host(here)


def test_an_error_within_ends_it():
    with pytest.raises(KeyError), cistern.torch.host_memory():
        raise KeyError
    assert not in_host(torch.empty(4 * MIB, dtype=torch.uint8, device="cuda"))


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "RMSprop", "SGD"])
def test_states_are_made_in_host_memory(kind):
    options = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(torch.optim, kind)(parameters(), lr=1e-3, **options)
    assert cistern.torch.host_optimizer_state(optimizer) is optimizer
    for _ in range(2):
        optimizer.step()
        states = states_of(optimizer)
        assert len(states) == (6 if kind.startswith("Adam") else 3)
        assert all(map(in_host, states))
    new = torch.nn.Parameter(torch.zeros(MIB, device="cuda"))
    new.grad = torch.ones_like(new)
    optimizer.add_param_group({"params": [new]})
    optimizer.step()
    assert all(map(in_host, states_of(optimizer)))


def test_states_never_take_the_devices_memory():
    torch.cuda.empty_cache()
    optimizer = torch.optim.Adam(parameters(4, 4 * MIB), lr=1e-3, foreach=False)
    cistern.torch.host_optimizer_state(optimizer)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    optimizer._init_group(optimizer.param_groups[0], [], [], [], [], [], [])
    assert torch.cuda.max_memory_reserved() == before
    assert all(map(in_host, states_of(optimizer)))


def test_states_that_are_there_move_and_so_do_loaded_ones():
    optimizer = torch.optim.Adam(parameters(), lr=1e-3)
    optimizer.step()
    states_of(optimizer)[0].copy_(torch.full((MIB,), 3.0))
    assert not any(map(in_host, states_of(optimizer)))
    cistern.torch.host_optimizer_state(optimizer)
    assert all(map(in_host, states_of(optimizer)))
    assert bool((states_of(optimizer)[0].cpu() == 3).all())
    optimizer.load_state_dict({**optimizer.state_dict()})
    assert all(map(in_host, states_of(optimizer)))


def test_a_history_has_neither_the_blocks_nor_segments():
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history()
    with cistern.torch.host_memory():
        host = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    device = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(None)
    mapped = [(event["addr"], event["addr"] + event["size"]) for event in snapshot["device_traces"][0]
              if event["action"] == "segment_map"]
    mapped += [(each["address"], each["address"] + each["total_size"]) for each in snapshot["segments"]]

    def within(tensor):
        return any(begin <= tensor.data_ptr() < end for begin, end in mapped)

    assert within(device) and not within(host)
    made = {event["addr"] for event in snapshot["device_traces"][0] if event["action"] == "alloc"}
    assert device.data_ptr() in made and host.data_ptr() not in made


def test_a_snapshot_of_a_pool_in_host_memory_is_empty():
    pool = _host_memory._pool(0)
    with torch.cuda.use_mem_pool(pool):
        host = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    assert in_host(host) and len(pool.snapshot()) == 0


def test_an_optimizer_may_go():
    optimizer = cistern.torch.host_optimizer_state(torch.optim.Adam(parameters(), lr=1e-3))
    optimizer.step()
    gone = torch.cuda.memory_allocated()
    del optimizer
    gc.collect()
    assert torch.cuda.memory_allocated() <= gone - 6 * 4 * MIB


@pytest.mark.parametrize("device, kind", [(object(), TypeError), ("cpu", ValueError), ("x", RuntimeError),
                                          (99, ValueError), (-5, (ValueError, RuntimeError))])
def test_what_is_no_device_is_refused(device, kind):
    with pytest.raises(kind), cistern.torch.host_memory(device):
        pass
    assert not in_host(torch.empty(4 * MIB, dtype=torch.uint8, device="cuda"))


def test_a_shortage_names_the_hosts_memory():
    with cistern.torch.host_memory(), pytest.raises(torch.cuda.OutOfMemoryError) as refusal:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    assert "Tried to allocate 32768.00 GiB of host memory.\ncistern: " in str(refusal.value)


def test_a_captures_pool_comes_first():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), cistern.torch.host_memory():
        within = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    assert not in_host(within)
    graph.replay()
    torch.cuda.synchronize()


def test_the_devices_allocator_counts_host_memory():
    with cistern.torch.host_memory():
        host = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    counts = cistern.default(host.device.index).stats_dict()
    assert counts["host_page_allocated_bytes"] >= 64 * MIB <= counts["host_page_bytes"]


def test_what_is_no_optimizer_is_refused():
    with pytest.raises(TypeError, match="torch.optim.Optimizer"):
        cistern.torch.host_optimizer_state([])
