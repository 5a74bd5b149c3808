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
import enum
import threading
import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .._contents import Contents
from . import _collectives, _enable, _pools_ahead, _replays


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


class _Region:
    """Its pools on each device. PyTorch has a pool open once at a time. So a region which is entered while it
    is open, in this thread or another one, has one more. A pool that pool() gives is no other's: a graph may be
    captured into it. They are kept as long as the process: tensors of a region may be anywhere."""

    def __init__(self) -> None:
        self.pools: Dict[int, List[Any]] = {}
        #: Those of `pools` that pool() gave, by the device and who shares it: all the region's graphs (None), those
        #: that were given one handle (that), or one graph (a weak reference).
        self.given: Dict[Tuple[int, Any], Any] = {}

    def on(self, device: int) -> List[Any]:
        return self.pools.setdefault(device, [])

    def asleep(self) -> bool:
        """Whether it sleeps on any device. They are asked: a sleep may have been interrupted."""
        return any(_is_asleep(device, pools) for device, pools in self.pools.items() if pools)


_regions: Dict[str, _Region] = {}
_open: Set[Tuple[int, Any]] = set()  # the device and the id of each pool that region() has open
_away = False  # whether some region may sleep
_lock = threading.RLock()


def _library() -> ctypes.CDLL:
    return _enable.library("regions need")


def _named(name: str) -> _Region:
    if not isinstance(name, str) or not name:
        raise TypeError(f"cistern.torch: the name of a region is a str that is not empty, not {name!r}")
    _library()
    _replays.follow(_sleeping)
    return _regions.setdefault(name, _Region())


def _add_pool(of: _Region, device: int) -> Any:
    """One more, on the device that is current. It sleeps if the region does."""
    made = _pools_ahead.mem_pool(_library(), _pools_ahead.PoolMemory.PAGES)
    if of.asleep():
        _put("cistern_torch_sleep", device, [made], int(Contents.DROP))
    of.on(device).append(made)
    return made


def _left_by_a_graph(of: _Region, device: int) -> Any:
    """A pool on the device whose graph is gone, and that no other graph or handle has; None if there is none."""
    for (on, who), left in list(of.given.items()):
        gone = on == device and isinstance(who, weakref.ref) and who() is None
        if gone and left.use_count() == 1:  # its own: no graph has been captured with its id elsewhere
            del of.given[on, who]
            if left not in of.given.values():
                return left
    return None


def pool(name: str) -> Any:
    """The torch.cuda.MemPool of the region `name` on the device that is current. It is made when it is asked
    for first. RuntimeError before cistern.torch.enable(), TypeError for a name that is no str."""
    return _shared_by(name, None)


def pool_of_graph(name: str, graph: Any, handle: Any = None) -> Any:
    """A torch.cuda.MemPool of the region `name` for `graph`, as pool() has it. Graphs that were given the same
    `handle` share one. Without a handle it is this graph's alone, because graphs that share a pool write over
    each other's results unless they replay in the order of their captures. Errors as of pool()."""
    return _shared_by(name, weakref.ref(graph) if handle is None else tuple(handle))


def _shared_by(name: str, who: Any) -> Any:
    with _lock:
        of = _named(name)
        import torch

        device = torch.cuda.current_device()
        if (device, who) not in of.given:
            if isinstance(who, weakref.ref):
                found = _left_by_a_graph(of, device)
            else:  # the handle may be that of a pool which was given
                found = next((each for (on, _), each in of.given.items() if on == device and tuple(each.id) == who), None)
            of.given[device, who] = found or _add_pool(of, device)
        return of.given[device, who]


def _sleeping(pool_id: Tuple[int, int]) -> Optional[str]:
    """The name of the region that gave the pool, if that sleeps."""
    if not _away:
        return None
    for name, of in list(_regions.items()):
        for (device, _), given in list(of.given.items()):
            if tuple(given.id) == tuple(pool_id):
                return name if _is_asleep(device, [given]) else None
    return None


@contextlib.contextmanager
def region(name: str) -> Iterator[None]:
    """CUDA tensors that this thread makes until the end, on the device that is current now, belong to the
    region `name`. They may be freed at any time. A region may be entered again, also while it is open, and
    by several threads. While it sleeps, nothing can be made in it. Errors as of pool()."""
    with _lock:
        of = _named(name)
        import torch

        device = torch.cuda.current_device()
        closed = (each for each in of.on(device)
                  if (device, each.id) not in _open and each not in of.given.values())
        taken = next(closed, None) or _add_pool(of, device)
        _open.add((device, taken.id))
    try:
        with torch.cuda.use_mem_pool(taken, device):
            yield
    finally:
        _open.discard((device, taken.id))  # without the lock: a sleep may hold it for long


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """CUDA tensors that this thread makes until the end belong to no region."""
    import torch

    with torch.cuda.use_mem_pool(_pools_ahead.mem_pool(_library(), _pools_ahead.PoolMemory.PAGES)):
        yield


def _known(names: Tuple[str, ...]) -> List[_Region]:
    for name in names:
        if name not in _regions:
            known = ", ".join(sorted(_regions)) or "none"
            raise ValueError(f"cistern.torch: there is no region {name!r}; there are: {known}")
    return [_regions[name] for name in dict.fromkeys(names or _regions)]


def _call(verb: str, device: int, pools: List[Any], kinds: Tuple[Any, ...], *arguments: Any) -> None:
    call = getattr(_library(), verb)
    call.restype = ctypes.c_char_p
    call.argtypes = (ctypes.c_int, ctypes.POINTER(_Name), ctypes.c_ulonglong, *kinds)
    names = (_Name * len(pools))(*(each.id for each in pools))
    refused = call(device, names, len(pools), *arguments)
    if refused is not None:
        raise RuntimeError(f"cistern.torch: device {device}: {refused.decode()}")


def _put(verb: str, device: int, pools: List[Any], how: int) -> _Figures:
    figures = _Figures()
    kinds = (ctypes.c_int, ctypes.POINTER(_Figures))
    _call(verb, device, pools, kinds, how, ctypes.byref(figures))
    return figures


def _limit_pool(device: int, pool: Any, limit: int) -> None:
    """The pool's blocks on the device may take so many bytes."""
    _call("cistern_torch_limit", device, [pool], (ctypes.c_ulonglong,), limit)


def _is_asleep(device: int, pools: List[Any]) -> bool:
    asleep = ctypes.c_int()
    _call("cistern_torch_asleep", device, pools, (ctypes.POINTER(ctypes.c_int),), ctypes.byref(asleep))
    return bool(asleep.value)


def _on_devices(verb: str, known: List[_Region], how: int) -> List[int]:
    """Calls it for each device that has pools of the regions; the sums of what it tells. If one refuses,
    those before stay as they are: a repetition passes over them."""
    _library()
    sums = [0, 0, 0]
    for device in sorted({device for of in known for device in of.pools}):
        pools = [each for of in known for each in of.pools.get(device, [])]
        figures = _put(verb, device, pools, how)
        sums = [a + b for a, b in zip(sums, (figures.bytes, figures.copied, figures.stayed))]
    return sums


def sleep(*names: str, contents: Contents = Contents.SAVE) -> Slept:
    """The regions' memory goes back to the devices; without a name, that of all regions. Waits for all
    work of each device that they were entered on. Nothing may use the tensors before wake(); they may be
    freed. Graphs that were captured in a region replay after wake, and must not be replayed before.
    `contents`: the fate of the bytes. RuntimeError if a device refuses: there the regions are as before,
    and on devices before it they sleep. The same if NCCL may have registered memory for a captured graph
    (docs/sleep.md)."""
    global _away
    with _lock:
        known = _known(names)
        refused = _collectives.refusal()
        if refused is not None:
            raise RuntimeError(f"cistern.torch: sleep: {refused}")
        _away = True
        return Slept(*_on_devices("cistern_torch_sleep", known, int(Contents(contents))))


class HostMemory(enum.IntEnum):
    """The fate of host memory at a wake: cistern/sleep.hpp."""

    KEEP = 0
    GIVE_BACK = 1
    KEEP_SAVED = 2


def wake(*names: str, keep_host_memory: bool = True) -> Woken:
    """The regions' memory is at its addresses again; without a name, that of all regions. RuntimeError
    if there is no room, with who holds the memory; then that device's regions sleep on.
    `keep_host_memory`: what was pinned stays so for the next sleep, which is faster then."""
    return wake_with(HostMemory.KEEP if keep_host_memory else HostMemory.GIVE_BACK, *names)


def wake_with(memory: HostMemory, *names: str) -> Woken:
    """wake(), with any fate of the host memory. RuntimeError as there."""
    global _away
    with _lock:
        woken = Woken(*_on_devices("cistern_torch_wake", _known(names), int(memory)))
        _away = any(of.asleep() for of in _regions.values())
        return woken


def saved(tensor: Any) -> Any:
    """A tensor of the CPU with the bytes that `tensor`, which sleeps or was woken with KEEP_SAVED, had before the
    sleep; None if they were not saved. Pre: it is contiguous. RuntimeError without regions."""
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
    """Whether the region `name` sleeps, on any device. ValueError if there is none."""
    with _lock:
        return _known((name,))[0].asleep()
