"""Between two steps, memory behind tensors that live on makes room for those of a step.

    cistern.torch.enable(overflow="64GiB")
    handle = cistern.torch.settle_after(optimizer)      # after each optimizer.step()
"""

from __future__ import annotations

import sys
from typing import Any, Iterable, Optional, Set

from .. import _arguments, _overflow
from .._arguments import Size
from .._overflow import Settled
from . import _host_memory, _usage

_NOTHING = Settled(0, 0, 0)


def settle(device: Any = None, most: Optional[Size] = None) -> Settled:
    """For a loop of one's own, between two steps: waits for the current stream of `device`,
    or of the current one, and moves memory behind its large tensors. They keep their addresses. Tensors that live
    on from step to step go to the host while steps overflow, and come home when there is room. At most `most` bytes
    move, an int or a text such as "1GiB"; None is no bound.

    Until it returns, nothing else may use the stream's memory: no other thread launches work on it, and side
    streams are done with it. For a side stream, `record_stream()` is enough, or that the current stream waits for
    it. Within a capture it does nothing. A device that had no tensor yet has nothing to move.

    RuntimeError before cistern.torch.enable() in its native mode, and where overflow is off. ValueError or
    TypeError for a `device` or a `most` that is none."""
    _check_native("settle")
    _overflow.most_bytes(most)
    index = _host_memory._index(device)
    return _settled(index, most) if _overflows(index, "settle") else _NOTHING


def settle_after(optimizer: Any, most: Optional[Size] = None) -> Any:
    """From now on each `optimizer.step()` of a torch.optim.Optimizer ends with settle(), on the devices of its
    parameters. `most` is that of settle(), on each device. Returns a handle: its `remove()` ends this. A device
    needs one such optimizer alone, the last of a step: each settle ends a step.

    At the end of each `optimizer.step()` the rules of settle() hold: no other thread launches work on the memory of
    the current stream, and side streams are done with it. Within a capture it does nothing.

    RuntimeError before cistern.torch.enable() in its native mode, and where overflow is off: here for the devices
    of the parameters, and in a step for one that they came to later. TypeError for what is no optimizer, ValueError
    or TypeError for a `most` that is none."""
    import torch

    _check_native("settle_after")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"cistern.torch: settle_after needs a torch.optim.Optimizer, not {optimizer!r}")
    after = _AfterStep(None if most is None else _arguments.size(most, "most"))
    after.check(_devices_of(optimizer))
    return optimizer.register_step_post_hook(after)


class _AfterStep:
    """The hook of one optimizer. `_checked`: devices that were found to have overflow."""

    def __init__(self, most: Optional[int]) -> None:
        self._most = most
        self._checked: Set[int] = set()

    def check(self, devices: Iterable[int]) -> None:
        for device in devices:
            if device not in self._checked and _overflows(device, "settle_after"):
                self._checked.add(device)

    def __call__(self, optimizer: Any, *_: Any) -> None:
        devices = _devices_of(optimizer)
        self.check(devices)
        for device in self._checked.intersection(devices):
            _settled(device, self._most)


def _devices_of(optimizer: Any) -> "list[int]":
    return sorted({p.device.index for group in optimizer.param_groups for p in group["params"] if p.is_cuda})


def _check_native(verb: str) -> None:
    try:
        _host_memory._library()
    except RuntimeError:
        from . import _enable

        raise RuntimeError(
            f"cistern.torch: {verb}() needs cistern.torch.enable() in its native mode, before the first CUDA tensor; "
            f"now it is {_enable.enabled() or 'off'}") from None


def _overflows(device: int, verb: str) -> bool:
    """Whether the device has tensors, and so an allocator. RuntimeError if overflow is off there."""
    figures = _usage.figures_of(device)
    if figures is not None and figures.host_bytes == 0:
        raise RuntimeError(f"cistern.torch: {verb}() needs overflow, which is off on device {device}: call "
                           'cistern.torch.enable(overflow="64GiB")')
    return figures is not None


def _settled(device: int, most: Optional[Size]) -> Settled:
    import torch

    from ..allocator import default

    with torch.cuda.device(device):
        stream = torch.cuda.current_stream()
        if torch.cuda.is_current_stream_capturing():
            return _NOTHING
        _join_copies(device, stream)
        return default(device).settle(stream, most)


def _join_copies(device: int, stream: Any) -> None:
    """The stream waits for the copies of host_activations(), which read and write its memory."""
    store = sys.modules.get("cistern.torch._store")
    lane = None if store is None else store._lanes.get(device)
    if lane is not None:
        stream.wait_stream(lane)
