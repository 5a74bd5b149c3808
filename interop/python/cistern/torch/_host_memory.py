"""CUDA tensors in the host's memory: for what is read and written once a step.

    cistern.torch.host_optimizer_state(optimizer)
    with cistern.torch.host_memory():
        rarely_read = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
"""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from typing import Any, Iterator

from . import _enable, _pools_ahead

_with_host_state: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _library() -> ctypes.CDLL:
    return _enable.library("host memory needs")


def _in_host(device: int, address: int) -> bool:
    """Whether the block at the address lies in the host's memory."""
    return bool(_library().cistern_torch_in_host_memory(device, ctypes.c_void_p(address)))


def _pool(device: int) -> Any:
    import torch

    with torch.cuda.device(device):
        return _pools_ahead.mem_pool(_library(), _pools_ahead.PoolMemory.HOST)


def _index(device: Any) -> int:
    import torch

    if device is not None and not isinstance(device, int):
        device = torch.device(device)  # which refuses what is none
    index: int = torch.cuda._utils._get_device_index(device, optional=True)
    if not 0 <= index < torch.cuda.device_count():
        raise ValueError(f"cistern.torch: there is no device {index}: they are 0 to "
                         f"{torch.cuda.device_count() - 1}")
    return index


@contextlib.contextmanager
def host_memory(device: Any = None) -> Iterator[None]:
    """CUDA tensors that this thread makes until the end, on `device` or the current one, lie in the host's
    memory. The device reads and writes them over the bus (docs/overflow.md says what that costs). They may be
    freed at any time. Inside a capture they lie in the capture's pool instead. Its end waits for the device.
    RuntimeError before cistern.torch.enable(), and where there is no such memory. ValueError, or torch.device's
    TypeError or RuntimeError, for what is no CUDA device."""
    import torch

    index = _index(device)
    # A pool of its own, which goes at the end. Memory that lies free in it serves other such pools from then on,
    # and empty_cache() gives it back.
    with torch.cuda.use_mem_pool(_pool(index), index):
        yield


@contextlib.contextmanager
def _on_devices_of(optimizer: Any) -> Iterator[None]:
    devices = {p.device.index for group in optimizer.param_groups for p in group["params"] if p.is_cuda}
    with contextlib.ExitStack() as stack:
        for device in sorted(devices):
            stack.enter_context(host_memory(device))
        yield


def _lacks_states(optimizer: Any) -> bool:
    state = optimizer.state
    return any(p.grad is not None and not state.get(p) for group in optimizer.param_groups for p in group["params"])


#: Smaller states are left where they are: a counter of steps is read by many kernels.
_LEAST = 64 << 10


def _belongs_there(value: Any) -> bool:
    import torch

    if not isinstance(value, torch.Tensor) or not value.is_cuda:
        return False
    storage = value.untyped_storage()
    if storage.nbytes() < _LEAST or value._base is not None:
        return False
    return not _in_host(value.device.index, storage.data_ptr())


class _States:
    """The states of one optimizer: those that were made elsewhere move."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = weakref.ref(optimizer)
        self._known = -1  # how many there were; an optimizer makes its states once

    def move(self, *_: Any, anew: bool = False) -> None:
        optimizer = self._optimizer()
        if optimizer is None:
            return
        states = [state for state in optimizer.state.values() if isinstance(state, dict)]
        count = sum(map(len, states))
        if count == self._known and not anew:
            return
        import torch

        for state in states:
            for name, value in state.items():
                if _belongs_there(value):
                    with host_memory(value.device), torch.no_grad():
                        state[name] = torch.empty_like(value).copy_(value)
        self._known = count

    def move_loaded(self, *_: Any) -> None:
        self.move(anew=True)


def host_optimizer_state(optimizer: Any) -> Any:
    """The states of a torch.optim.Optimizer lie in the host's memory from now on; returns the optimizer.
    States that are there move now. Those of later steps are made there: in the optimizer's `_init_group`,
    which most of PyTorch's have. If there is none, or that makes no states, they move after the step that made
    them. That first step needs the device's memory. TypeError for anything else. RuntimeError as of
    host_memory(). Once is enough: a second call changes nothing."""
    import torch

    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"cistern.torch: host_optimizer_state needs a torch.optim.Optimizer, not {optimizer!r}")
    _library()
    if optimizer in _with_host_state:
        return optimizer
    states = _States(optimizer)
    states.move()
    init_group = getattr(optimizer, "_init_group", None)
    if init_group is not None:

        def init_there(*arguments: Any, **named: Any) -> Any:
            if not _lacks_states(optimizer):
                return init_group(*arguments, **named)
            with _on_devices_of(optimizer):
                return init_group(*arguments, **named)

        optimizer._init_group = init_there
    optimizer.register_step_post_hook(states.move)
    optimizer.register_load_state_dict_post_hook(states.move_loaded)
    _with_host_state.add(optimizer)
    return optimizer
