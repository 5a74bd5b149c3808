"""PyTorch on Cistern.

    import cistern.torch
    cistern.torch.enable()      # before the first CUDA tensor

From then on every CUDA tensor of the process comes from Cistern, and the memory reports of
`torch.cuda` are Cistern's. `python -m cistern.torch script.py` does the same for an unchanged
script. `region` names tensors that `sleep` and `wake` together. `MemPool` is for one region only, under PyTorch's own caching. docs/pytorch.md says what
differs.
"""

from ._enable import Mode, enable, enabled
from ._host_activations import HostActivations, MovedActivations, host_activations
from ._host_memory import host_memory, host_optimizer_state
from ._label_modules import ModuleLabels, label_modules
from ._mem_pool import MemPool
from ._overflow import overflow
from ._regions import Slept, Woken, asleep, pool, region, sleep, wake

__all__ = ["HostActivations", "Mode", "MemPool", "ModuleLabels", "MovedActivations", "Slept", "Woken", "asleep",
           "enable", "enabled", "host_activations", "host_memory", "host_optimizer_state", "label_modules",
           "overflow", "pool", "region", "sleep", "wake"]
