"""PyTorch's settings: PYTORCH_ALLOC_CONF and _set_allocator_settings."""

import pytest
import torch

from conftest import RELEASE, run_alone

#: Before 2.10 the backend is read from the second alone.
NAMES = ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"]
SHOW = "cistern.torch.enable('native')\ntorch.cuda.init()\nprint(torch.cuda.memory.get_allocator_backend())\n"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", ["native", "cudaMallocAsync"])
def test_a_backend_that_the_environment_names_is_taken(name, backend):
    out, err = run_alone(SHOW + "print(torch.empty(5, device='cuda').numel())", **{name: f"backend:{backend}"})
    assert out.split() == ["cistern", "5"]
    is_read = RELEASE >= (2, 10) or name == NAMES[1]
    assert ("backend:cudaMallocAsync has no effect" in err) == (backend == "cudaMallocAsync" and is_read)


@pytest.mark.since(10)
@pytest.mark.parametrize("settings, fraction", [(("0.5", "0.25"), "0.5"), (("1.0", "0.25"), "1.0")])
def test_a_limit_is_kept_that_is_there_when_cuda_is_initialised(settings, fraction):
    before, after = (f"torch._C._accelerator_setAllocatorSettings('per_process_memory_fraction:{each}')\n"
                     for each in settings)
    out, _ = run_alone("cistern.torch.enable('native')\n" + before + "torch.cuda.init()\n" + after +
                       "print(torch.cuda.memory.get_per_process_memory_fraction())\n")
    assert out.split() == [fraction]


def test_a_backend_that_a_setting_names_is_taken():
    torch.cuda.memory._set_allocator_settings("backend:native")
    assert torch.cuda.memory.get_allocator_backend() == "cistern"
