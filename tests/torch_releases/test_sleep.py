"""Named regions that sleep and wake, and the module with torch_memory_saver's interface."""

import os
import subprocess
import sys

import pytest
import torch

import cistern.torch
from cistern.torch import _collectives
from cistern.torch_memory_saver import torch_memory_saver

MIB = 1 << 20


def filled(count, value):
    return torch.full((count,), value, dtype=torch.uint8).cuda()


def free():
    return torch.cuda.mem_get_info()[0]


def test_a_region_sleeps_and_wakes_with_its_bytes():
    with cistern.torch.region("weights"):
        weights = filled(20 * MIB, 7)
    address, before = weights.data_ptr(), free()
    slept = cistern.torch.sleep("weights")
    assert cistern.torch.asleep("weights")
    assert slept.released >= 20 * MIB and slept.saved >= 20 * MIB and slept.stayed == 0
    assert free() >= before + 20 * MIB
    woken = cistern.torch.wake("weights")
    assert woken.mapped == slept.released and woken.restored == slept.saved
    assert not cistern.torch.asleep("weights")
    assert weights.data_ptr() == address
    assert bool((weights.cpu() == 7).all())


def test_regions_sleep_by_name_and_refuse_allocations():
    with cistern.torch.region("a"):
        a = filled(4 * MIB, 1)
    with cistern.torch.region("b"):
        b = filled(4 * MIB, 2)
    cistern.torch.sleep("a", contents=cistern.Contents.DROP)
    with pytest.raises(RuntimeError, match="asleep"), cistern.torch.region("a"):
        filled(MIB, 3)
    with cistern.torch.region("b"):
        filled(MIB, 4)
    del a
    cistern.torch.sleep("a", "b")
    cistern.torch.wake(keep_host_memory=False)
    assert bool((b.cpu() == 2).all())
    with pytest.raises(ValueError, match="there is no region 'c'"):
        cistern.torch.sleep("c")


def test_torch_memory_saver_is_here_under_its_own_names():
    assert torch_memory_saver.enabled
    with torch_memory_saver.region("w", enable_cpu_backup=True):
        kept = filled(4 * MIB, 5)
    with torch_memory_saver.region("w"):
        dropped = filled(4 * MIB, 6)
    with torch_memory_saver.disable(), torch_memory_saver.region("w"):
        outside = filled(4 * MIB, 8)
    before = free()
    torch_memory_saver.pause("w")
    assert free() >= before + 8 * MIB
    assert bool((outside.cpu() == 8).all())
    torch_memory_saver.resume("w")
    assert bool((kept.cpu() == 5).all())
    assert dropped.numel() == 4 * MIB
    torch_memory_saver.pause()
    assert bool((torch_memory_saver.get_cpu_backup(kept) == 5).all())
    assert torch_memory_saver.get_cpu_backup(dropped) is None
    torch_memory_saver.resume()
    assert torch_memory_saver.get_cpu_backup(kept) is None
    assert bool((kept.cpu() == 5).all())


def test_tensors_made_while_the_memory_saver_is_disabled_stay():
    with torch_memory_saver.region("around", enable_cpu_backup=True):
        inside = filled(4 * MIB, 1)
        with torch_memory_saver.disable():
            outside = filled(4 * MIB, 2)
        again = filled(4 * MIB, 3)
    before = free()
    torch_memory_saver.pause("around")
    assert before + 8 * MIB <= free() < before + 12 * MIB
    assert bool((outside.cpu() == 2).all())
    torch_memory_saver.resume("around")
    assert bool((inside.cpu() == 1).all()) and bool((again.cpu() == 3).all())


def test_the_memory_saver_refuses_what_it_cannot_do():
    for refused in ({"enable_disk_backup": True}, {"enable_cpu_backup": True, "cpu_backup_backend": "mmap"}):
        with pytest.raises(NotImplementedError), torch_memory_saver.region("x", **refused):
            pass
    with pytest.raises(ValueError, match="hook_mode 'none'"):
        torch_memory_saver.hook_mode = "none"
    torch_memory_saver.hook_mode = "torch"
    with pytest.warns(UserWarning, match="memory_margin_bytes has no effect"):
        torch_memory_saver.memory_margin_bytes = 1 << 30
    with pytest.raises(ValueError, match="contiguous tensor on a GPU"):
        torch_memory_saver.get_cpu_backup(torch.zeros(4))


@pytest.mark.parametrize("mode", ["native", "plugin"])
@pytest.mark.parametrize("chosen", [None, "1"])
def test_nccl_registers_nothing_for_graphs_unless_the_program_has_it_do_so(mode, chosen):
    there = {name: value for name, value in os.environ.items() if name != "NCCL_GRAPH_REGISTER"}
    if chosen is not None:
        there["NCCL_GRAPH_REGISTER"] = chosen
    source = f"""
import ctypes, os
ctypes.CDLL(os.environ["TORCH_TEST_FOLDER"] + "/libcuda.so.1", ctypes.RTLD_GLOBAL)
import cistern.torch
cistern.torch.enable("{mode}")
print(os.environ["NCCL_GRAPH_REGISTER"])
"""
    ran = subprocess.run([sys.executable, "-c", source], env=there, capture_output=True, text=True, timeout=300,
                         check=True)
    assert ran.stdout.split() == [chosen or "0"]


def captured():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=cistern.torch.pool("captured").id):
        made = torch.empty(1024, device="cuda")
    return graph, made


# The driver here does not tell what a graph calls: so it may be NCCL.
def test_a_region_does_not_sleep_once_nccl_may_have_registered_memory(monkeypatch):
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    monkeypatch.setattr(_collectives, "_registered", False)
    monkeypatch.setenv("NCCL_GRAPH_REGISTER", "0")
    held = [captured()]
    cistern.torch.sleep("captured")
    cistern.torch.wake("captured")
    monkeypatch.setenv("NCCL_GRAPH_REGISTER", "1")
    held.append(captured())
    with pytest.raises(RuntimeError, match="may have registered the memory .* NCCL_GRAPH_REGISTER=0"):
        cistern.torch.sleep("captured")
    assert not cistern.torch.asleep("captured")
    torch.distributed.destroy_process_group()


def test_a_graph_does_not_replay_while_its_region_sleeps():
    graph, made = captured()
    graph.replay()
    cistern.torch.sleep("captured")
    with pytest.raises(RuntimeError, match="region 'captured' is asleep: wake it first"):
        graph.replay()
    cistern.torch.wake("captured")
    graph.replay()
    del made


def nine_and_three(first, second):
    """The results of two graphs, which are captured by `first` and `second`: nines and threes. If they share memory, and
    the second replays before the first, then that writes over its threes."""
    nines, threes = filled(8 * MIB, 9), filled(8 * MIB, 3)
    with first:
        scratch = torch.empty_like(nines).copy_(nines)
        small = torch.empty(MIB, dtype=torch.uint8, device="cuda").copy_(scratch[:MIB])
        del scratch
    with second:
        result = torch.empty_like(threes).copy_(threes)
    return small, result


def graphs(count):
    return [torch.cuda.CUDAGraph() for _ in range(count)]


def test_each_graph_of_the_memory_saver_has_memory_of_its_own():
    a, b = graphs(2)
    saver = torch_memory_saver.cuda_graph
    small, result = nine_and_three(saver(a, tag="own"), saver(b, tag="own"))
    b.replay()
    a.replay()
    assert bool((small.cpu() == 9).all()) and bool((result.cpu() == 3).all())
    before = free()
    torch_memory_saver.pause("own")
    assert free() >= before + 16 * MIB
    with pytest.raises(RuntimeError, match="is asleep: wake it first"):
        b.replay()
    torch_memory_saver.resume("own")
    b.replay()
    a.replay()
    assert bool((result.cpu() == 3).all())


def test_graphs_of_the_memory_saver_share_memory_if_they_are_given_one_pool():
    a, b, c, d = graphs(4)
    saver, handle = torch_memory_saver.cuda_graph, torch.cuda.graph_pool_handle()
    nine_and_three(saver(a, handle, tag="shared"), saver(b, handle, tag="shared"))
    nine_and_three(saver(c, a.pool(), tag="shared"), saver(d, tag="shared"))
    assert a.pool() == b.pool() == c.pool() != d.pool()


def capture(captured, graph, **how):
    with captured(graph, **how):
        torch.empty(MIB, dtype=torch.uint8, device="cuda")
    return graph.pool()


def test_a_graph_that_is_captured_after_another_is_gone_has_its_memory():
    pools = set()
    for _ in range(3):
        a, b = graphs(2)
        pools |= {capture(torch_memory_saver.cuda_graph, each, tag="again") for each in (a, b)}
        del a, b
    assert len(pools) == 2


def test_memory_that_a_graph_was_captured_into_elsewhere_is_no_next_graphs():
    a, b, c = graphs(3)
    pool = capture(torch_memory_saver.cuda_graph, a, tag="elsewhere")
    assert capture(torch.cuda.graph, b, pool=pool) == pool
    del a
    assert capture(torch_memory_saver.cuda_graph, c, tag="elsewhere") != pool


def test_a_backup_that_is_retained_is_there_until_the_next_pause(monkeypatch):
    monkeypatch.setattr(torch_memory_saver, "retain_cpu_backup", True)
    with torch_memory_saver.region("retained", enable_cpu_backup=True):
        kept = filled(4 * MIB, 5)
        freed = filled(4 * MIB, 6)
    torch_memory_saver.pause("retained")
    torch_memory_saver.resume("retained")
    kept.copy_(filled(4 * MIB, 7))
    assert bool((torch_memory_saver.get_cpu_backup(kept) == 5).all())
    assert bool((torch_memory_saver.get_cpu_backup(kept[100:200]) == 5).all())
    place = freed.data_ptr()
    del freed
    with torch_memory_saver.region("retained", enable_cpu_backup=True):
        newer = [filled(4 * MIB, 8)]
    assert newer[0].data_ptr() == place
    assert torch_memory_saver.get_cpu_backup(newer[0]) is None
    torch_memory_saver.retain_cpu_backup = False
    assert bool((torch_memory_saver.get_cpu_backup(kept) == 5).all())
    torch_memory_saver.pause("retained")
    assert bool((torch_memory_saver.get_cpu_backup(kept) == 7).all())
    torch_memory_saver.resume("retained")
    assert torch_memory_saver.get_cpu_backup(kept) is None


def test_nothing_is_retained_unless_it_is_asked_for(monkeypatch):
    assert torch_memory_saver.retain_cpu_backup is None
    for said, means in (("1", True), ("0", None)):
        monkeypatch.setenv("TMS_RETAIN_CPU_BACKUP", said)
        assert type(torch_memory_saver)().retain_cpu_backup is means
