"""Named regions: tensors that sleep together.

    with cistern.torch.region("weights"):
        model = Model().cuda()
    cistern.torch.sleep("weights")      # its memory is the device's for a while
    ...
    cistern.torch.wake("weights")       # at the same addresses, with the same bytes
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .._contents import Contents
from . import _collectives, _enable, _native, _replays


class Slept(NamedTuple):
    """The outcome of a sleep on all devices, in bytes."""

    released: int  #: given back to the devices
    saved: int  #: copied to the host
    stayed: int  #: what other processes have, or the device kept


class Woken(NamedTuple):
    """The outcome of a wake on all devices, in bytes."""

    mapped: int  #: taken from the devices
    restored: int  #: copied from the host
    pinned: int  #: host memory that is kept for the next sleep


class _Name(ctypes.Structure):
    _fields_ = [("first", ctypes.c_ulonglong), ("second", ctypes.c_ulonglong)]


class _Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("bytes", "copied", "stayed")]


_pools: Dict[str, Any] = {}  # kept as long as the process: tensors of a region may be anywhere
_asleep: Dict[str, bool] = {}
_lock = threading.RLock()


def _library() -> ctypes.CDLL:
    if _enable.enabled() != "native" or _native._library is None:
        raise RuntimeError(
            "cistern.torch: regions need cistern.torch.enable() in its native mode, before the "
            f"first CUDA tensor; now it is {_enable.enabled() or 'off'}"
        )
    return _native._library


def pool(name: str) -> Any:
    """The torch.cuda.MemPool of the region `name`. It is made when it is named first. RuntimeError before
    cistern.torch.enable(), TypeError for a name that is no str."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"cistern.torch: the name of a region is a str that is not empty, not {name!r}")
    _library()
    with _lock:
        if name not in _pools:
            import torch

            _collectives.register_nothing()
            _replays.follow(_sleeping)
            _pools[name] = torch.cuda.MemPool()
            _asleep[name] = False
        return _pools[name]


def _sleeping(pool_id: Tuple[int, int]) -> Optional[str]:
    """The name of the region that the pool is, if it sleeps."""
    if not any(_asleep.values()):
        return None
    return next((name for name, of in _pools.items() if _asleep[name] and tuple(of.id) == tuple(pool_id)), None)


@contextlib.contextmanager
def region(name: str) -> Iterator[None]:
    """CUDA tensors that this thread makes until the end, on the device that is current now, belong to the
    region `name`. They may be freed at any time, and a region may be entered again. While it sleeps,
    nothing can be made in it. Errors as of pool()."""
    import torch

    with torch.cuda.use_mem_pool(pool(name)):
        yield


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """CUDA tensors that this thread makes until the end belong to no region."""
    import torch

    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        yield


def _known(names: tuple[str, ...]) -> List[str]:
    for name in names:
        if name not in _pools:
            known = ", ".join(sorted(_pools)) or "none"
            raise ValueError(f"cistern.torch: there is no region {name!r}; there are: {known}")
    return list(dict.fromkeys(names or _pools))


def _on_devices(verb: str, names: List[str], how: int) -> List[int]:
    """Calls it for each device; the sums of what it tells. If one refuses, those before stay as they
    are: a repetition passes over them."""
    import torch

    call = getattr(_library(), verb)
    call.restype = ctypes.c_char_p
    call.argtypes = (ctypes.c_int, ctypes.POINTER(_Name), ctypes.c_ulonglong, ctypes.c_int,
                     ctypes.POINTER(_Figures))
    pools = (_Name * len(names))(*(_pools[name].id for name in names))
    sums = [0, 0, 0]
    for device in range(torch.cuda.device_count()):
        figures = _Figures()
        refused = call(device, pools, len(names), how, ctypes.byref(figures))
        if refused is not None:
            raise RuntimeError(f"cistern.torch: device {device}: {refused.decode()}")
        sums = [a + b for a, b in zip(sums, (figures.bytes, figures.copied, figures.stayed))]
    return sums


def sleep(*names: str, contents: Contents = Contents.SAVE) -> Slept:
    """The regions' memory goes back to the devices; without a name, that of all regions. Waits for all
    work of each device. Nothing may use the tensors before wake(); they may be freed. Graphs that were
    captured in a region replay after wake, and must not be replayed before. `contents`: the fate of the
    bytes. RuntimeError if a device refuses, with that device's regions as before; and if NCCL may have
    registered memory for a captured graph (docs/sleep.md)."""
    with _lock:
        known = _known(names)
        refused = _collectives.refusal()
        if refused is not None:
            raise RuntimeError(f"cistern.torch: sleep: {refused}")
        slept = Slept(*_on_devices("cistern_torch_sleep", known, int(Contents(contents))))
        _asleep.update(dict.fromkeys(known, True))
        return slept


def wake(*names: str, keep_host_memory: bool = True) -> Woken:
    """The regions' memory is at its addresses again; without a name, that of all regions. RuntimeError
    if there is no room, with who holds the memory; then that device's regions sleep on.
    `keep_host_memory`: what was pinned stays so for the next sleep, which is faster then."""
    with _lock:
        known = _known(names)
        woken = Woken(*_on_devices("cistern_torch_wake", known, int(bool(keep_host_memory))))
        _asleep.update(dict.fromkeys(known, False))
        return woken


def saved(tensor: Any) -> Any:
    """A tensor of the CPU with the bytes that `tensor`, which sleeps, had before; None if they were not
    saved. Pre: it is contiguous. RuntimeError without regions."""
    import torch

    call = _library().cistern_torch_copy_saved
    call.restype = ctypes.c_char_p
    call.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulonglong,
                     ctypes.POINTER(ctypes.c_int))
    read, copied = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu"), ctypes.c_int()
    bytes_of = tensor.numel() * tensor.element_size()
    refused = call(tensor.device.index, read.data_ptr(), tensor.data_ptr(), bytes_of, ctypes.byref(copied))
    if refused is not None:
        raise RuntimeError(f"cistern.torch: {refused.decode()}")
    if not copied.value:
        return None
    read = read.conj() if tensor.is_conj() else read
    return -read if tensor.is_neg() else read


def asleep(name: str) -> bool:
    """Whether the region `name` sleeps. ValueError if there is none."""
    with _lock:
        return _asleep[_known((name,))[0]]
