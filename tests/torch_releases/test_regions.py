"""Regions on several devices, in several threads, and within one another."""

import torch

from cistern.torch_memory_saver import torch_memory_saver


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
