"""Regions on several devices, in several threads, and within one another."""

import threading

import torch

from cistern.torch_memory_saver import torch_memory_saver

MIB = 1 << 20


def filled(count, value):
    return torch.full((count,), value, dtype=torch.uint8).cuda()


def holds(tensor, value):
    return bool((tensor.cpu() == value).all())


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
