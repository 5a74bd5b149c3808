"""Out of memory as PyTorch's users know it."""

import pytest
import torch

MIB = 1 << 20


@pytest.fixture
def little(limit):
    limit(512 * MIB)


def test_the_error_is_pytorchs_and_says_who_holds_what(little):
    held = torch.empty(400 * MIB, dtype=torch.uint8, device="cuda")
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory") as failure:
        torch.empty(300 * MIB, dtype=torch.uint8, device="cuda")
    text = str(failure.value)
    assert text.startswith("CUDA out of memory. Tried to allocate 300.00 MiB. GPU 0 has a total capacity of")
    assert "300.00 MiB" in text and "400.00 MiB" in text and "allowed" in text
    del held
    assert torch.ones(300 * MIB, dtype=torch.uint8, device="cuda")[-1].item() == 1


def test_a_fraction_is_kept_and_told(little):
    assert 0 < torch.cuda.get_per_process_memory_fraction() < 1
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(600 * MIB, dtype=torch.uint8, device="cuda")


def test_a_wrong_fraction_is_refused():
    with pytest.raises((ValueError, RuntimeError)):
        torch.cuda.set_per_process_memory_fraction(1.5)


def test_a_fraction_of_nothing_lets_nothing_be_reserved(little):
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.0)
    assert torch.cuda.get_per_process_memory_fraction() == 0
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(600 * MIB, dtype=torch.uint8, device="cuda")


@pytest.mark.skipif(torch.__version__ < "2.10", reason="settings say it since 2.10")
@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_the_fraction_that_pytorchs_settings_name_is_kept(run, name):
    status, out, err = run("""
import torch
assert abs(torch.cuda.get_per_process_memory_fraction() - 0.01) < 1e-6
total = torch.cuda.get_device_properties(0).total_memory
held = torch.empty(total // 200, dtype=torch.uint8, device="cuda")
try:
    torch.empty(total // 100, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    print("kept")
""", environment={name: "per_process_memory_fraction:0.01"})
    assert status == 0 and out.strip() == "kept", err


def test_observers_are_told(little):
    told = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *figures: told.append(figures))
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(700 * MIB, dtype=torch.uint8, device="cuda")
    device, asked, allowed, _ = told[0]
    assert device == 0 and asked == 700 * MIB
    fraction = torch.cuda.get_per_process_memory_fraction()
    total = torch.cuda.get_device_properties(0).total_memory
    assert abs(allowed - fraction * total) < MIB
    assert torch.cuda.memory_stats()["num_ooms"] >= 1


def test_what_is_cached_is_given_back_before_it_fails(little):
    for size in (100, 150, 200, 250, 300, 350, 400):
        block = torch.ones(size * MIB, dtype=torch.uint8, device="cuda")
        assert block[-1].item() == 1
        del block
