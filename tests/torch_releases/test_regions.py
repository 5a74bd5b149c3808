"""Regions on several devices, in several threads, and within one another."""

import threading

import pytest
import torch

import cistern.torch
from cistern.torch import _regions
from cistern.torch_memory_saver import torch_memory_saver

MIB = 1 << 20


@pytest.fixture(autouse=True)
def empty():
    """Free memory of regions stays theirs, until they sleep."""
    yield
    cistern.torch.sleep(contents=cistern.Contents.DROP)
    cistern.torch.wake(keep_host_memory=False)


def filled(count, value):
    return torch.full((count,), value, dtype=torch.uint8).cuda()


def holds(tensor, value):
    return bool((tensor.cpu() == value).all())


def filled_on(device, region, value):
    torch.cuda.set_device(device)
    with cistern.torch.region(region):
        return filled(8 * MIB, value)


def test_a_region_sleeps_on_each_device_that_it_was_entered_on():
    tensors = [filled_on(device, "devices", device) for device in (0, 1, 1)]
    before = [torch.cuda.mem_get_info(device)[0] for device in (0, 1)]
    assert cistern.torch.sleep("devices").saved == 24 * MIB
    assert torch.cuda.mem_get_info(0)[0] >= before[0] + 8 * MIB
    assert torch.cuda.mem_get_info(1)[0] >= before[1] + 16 * MIB
    cistern.torch.wake("devices")
    assert all(holds(tensor, tensor.device.index) for tensor in tensors)


def test_a_region_that_sleeps_refuses_tensors_on_a_device_that_is_new_to_it():
    first = filled_on(0, "one device", 1)
    cistern.torch.sleep("one device")
    with pytest.raises(RuntimeError, match="is asleep: wake it first"):
        filled_on(1, "one device", 2)
    cistern.torch.wake("one device")
    assert holds(filled_on(1, "one device", 2), 2) and holds(first, 1)


def test_a_region_of_which_a_part_sleeps_is_asleep(monkeypatch):
    tensors = [filled_on(device, "part", device) for device in (0, 1)]
    put = _regions._put

    def put_the_first(verb, device, *arguments):
        if device == 1:
            raise RuntimeError("device 1 refuses")
        return put(verb, device, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(_regions, "_put", put_the_first)
        with pytest.raises(RuntimeError, match="device 1 refuses"):
            cistern.torch.sleep("part")
    assert cistern.torch.asleep("part")
    assert holds(tensors[1], 1)
    assert cistern.torch.sleep("part").saved == 8 * MIB
    cistern.torch.wake("part")
    assert not cistern.torch.asleep("part")
    assert all(holds(tensor, tensor.device.index) for tensor in tensors)


def test_a_region_whose_sleep_was_interrupted_is_asleep(monkeypatch):
    made = filled_on(0, "interrupted", 1)
    put = _regions._put

    def put_and_stop(*arguments):
        put(*arguments)
        raise KeyboardInterrupt

    for verb, asleep in ((cistern.torch.sleep, True), (cistern.torch.wake, False)):
        with monkeypatch.context() as patched:
            patched.setattr(_regions, "_put", put_and_stop)
            with pytest.raises(KeyboardInterrupt):
                verb("interrupted")
        assert cistern.torch.asleep("interrupted") == asleep
    assert holds(made, 1)


def test_a_region_is_entered_again_while_it_is_open():
    made = []
    with cistern.torch.region("outer"):
        made.append(filled(4 * MIB, 0))
        with cistern.torch.region("inner"):
            between = filled(4 * MIB, 9)
            with cistern.torch.region("outer"), cistern.torch.region("outer"):
                made.append(filled(4 * MIB, 1))
        made.append(filled(4 * MIB, 2))
    outside = filled(4 * MIB, 8)
    assert cistern.torch.sleep("outer").saved == 12 * MIB
    assert holds(between, 9) and holds(outside, 8)
    cistern.torch.wake("outer")
    assert all(holds(tensor, value) for value, tensor in enumerate(made))


def test_threads_are_in_a_region_at_once():
    made, met = {}, threading.Barrier(3)

    def make(value):
        with cistern.torch.region("threads"):
            met.wait(60)
            made[value] = filled(4 * MIB, value)
            met.wait(60)

    threads = [threading.Thread(target=make, args=(value,)) for value in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cistern.torch.sleep("threads").saved == 12 * MIB
    cistern.torch.wake("threads")
    assert len(made) == 3 and all(holds(tensor, value) for value, tensor in made.items())


def test_a_region_is_entered_while_a_graph_is_captured_into_it():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=cistern.torch.pool("captured within").id):
        with cistern.torch.region("captured within"):
            made = torch.empty(MIB, device="cuda")
    assert cistern.torch.sleep("captured within").released >= 4 * MIB
    cistern.torch.wake("captured within")
    graph.replay()
    assert made.numel() == MIB


def test_a_thread_disables_regions_for_itself_alone():
    disabled, over = threading.Event(), threading.Event()

    def disable():
        with torch_memory_saver.disable():
            disabled.set()
            over.wait(60)

    thread = threading.Thread(target=disable)
    thread.start()
    disabled.wait(60)
    with torch_memory_saver.region("beside", enable_cpu_backup=True):
        made = filled(4 * MIB, 1)
    over.set()
    thread.join()
    torch_memory_saver.pause("beside")
    assert holds(torch_memory_saver.get_cpu_backup(made), 1)
    torch_memory_saver.resume("beside")


def test_a_backup_is_on_the_host_and_has_the_tensors_values():
    numbers = torch.arange(8).to(torch.complex64) * 1j
    with torch_memory_saver.region("backup", enable_cpu_backup=True):
        made = numbers.cuda()
    torch_memory_saver.pause("backup")
    with torch.device("cuda"):
        assert torch_memory_saver.get_cpu_backup(made).device.type == "cpu"
    assert torch.equal(torch_memory_saver.get_cpu_backup(made), numbers)
    assert torch.equal(torch_memory_saver.get_cpu_backup(made.conj()), numbers.conj())
    torch_memory_saver.resume("backup")
