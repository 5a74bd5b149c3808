"""Tensors that autograd saves, in the host's memory until the backward pass asks for them.

A `Copy` has the bytes of one storage. Each tensor that autograd has saved of that storage holds it, as a `Moved`.
So the copy goes when the last of them does. All copies between device and host are queued on the stream that is
current, and nothing waits for them on the host.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Dict, Optional, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.weak import TensorWeakRef

from . import _host_memory, _usage

#: Whether the backward pass gets its tensors in the device's memory. Else it reads them over the bus.
COPY_BACK = True
#: A smaller storage is not worth a copy.
LEAST = 1 << 20
#: A tensor that is a smaller part of its storage stays: others are likely to need the rest.
_LEAST_PART = 4


def kept(tensor: Any) -> Tuple[Any, int]:
    """What stays where it is. Without its node, which would refer to itself; with the version that was saved."""
    return tensor.detach(), tensor._version


def unpack(packed: Any) -> Any:
    """The tensor that was saved. RuntimeError if it was changed in place since, as autograd has it."""
    if isinstance(packed, Moved):
        return packed.restored()
    tensor, version = packed
    _check(tensor, version)
    return tensor


def _check(tensor: Any, version: int) -> None:
    if tensor._version != version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: it is at "
            f"version {tensor._version}; expected version {version} instead (found by "
            "cistern.torch.host_activations)")


def _raw_stream(device: int) -> int:
    return int(torch._C._cuda_getCurrentRawStream(device))


def movable(tensor: Any) -> Any:
    """The tensor's storage, if a copy can stand for it and may free its memory; else None. A parameter stays alive,
    also where one of its views is saved."""
    if type(tensor) is not torch.Tensor or not tensor.is_cuda or tensor.layout != torch.strided:
        return None
    storage = tensor.untyped_storage()
    size = storage.nbytes()
    if size < LEAST or tensor.numel() * tensor.element_size() * _LEAST_PART < size:
        return None
    if tensor.is_conj() or tensor.is_neg() or tensor.is_quantized:
        return None
    owner = tensor if tensor._base is None else tensor._base
    stays = isinstance(owner, torch.nn.Parameter) or (owner.is_leaf and owner.requires_grad)
    return None if stays else storage


class Copy:
    """The bytes of a storage in the host's memory. Under its store's lock.

    waiting == the tensors of it that were saved and not asked for yet."""

    def __init__(self, store: "Store", owner: Any, host: Any, stream: Any) -> None:
        self.store, self.host, self.stream = store, host, stream
        self.owner = TensorWeakRef(owner)
        self.waiting = 0
        self._last: Optional[StorageWeakRef] = None  # the storage that was handed out last
        self._last_stream = -1
        self._held: Any = None  # the same, while others are to ask for it soon

    def storage(self, first: bool) -> Any:
        """Its bytes, for the stream that is current. `first`: the tensor asks for the first time."""
        raw = _raw_stream(self.store.device)
        found = None
        if self._last is not None and self._last_stream == raw:
            found = torch.UntypedStorage._new_with_weak_ptr(self._last.cdata)
        if found is None:
            self._order_behind(raw)
            found = self._fetched()
            self._last, self._last_stream = StorageWeakRef(found), raw
        if first:
            self.waiting -= 1
        self._held = found if self.waiting > 0 else None
        return found

    def _order_behind(self, raw: int) -> None:
        if raw == self.stream.cuda_stream or torch.cuda.is_current_stream_capturing():
            return
        current = torch.cuda.current_stream(self.store.device)
        current.wait_stream(self.stream)
        self.host.record_stream(current)

    # If the device is full, the copy itself is as good as one that overflow would serve.
    def _fetched(self) -> Any:
        if not COPY_BACK:
            return self.host.untyped_storage()
        try:
            made = torch.empty_like(self.host)
        except torch.OutOfMemoryError:
            return self.host.untyped_storage()
        if _host_memory._in_host(self.store.device, made.data_ptr()):
            return self.host.untyped_storage()
        return made.copy_(self.host, non_blocking=True).untyped_storage()


class Moved:
    """A tensor that autograd has saved, of a Copy."""

    def __init__(self, copy: Copy, tensor: Any, counter: Any) -> None:
        self._copy, self._dtype = copy, tensor.dtype
        self._place = (tensor.storage_offset(), tensor.size(), tensor.stride())
        self._counter, self._version = counter, tensor._version
        self._first = True
        copy.waiting += 1

    def restored(self) -> Any:
        """The tensor, in the same place of a storage with the same bytes."""
        _check(self._counter, self._version)
        store = self._copy.store
        with torch.no_grad():
            with store.lock:
                storage = self._copy.storage(self._first)
                self._first = False
            tensor = torch.empty(0, dtype=self._dtype, device=storage.device).set_(storage, *self._place)
        store.look()
        return tensor


class Store:
    """The copies of one device, and how many may be made in a step. Thread-safe."""

    def __init__(self, device: int, budget: int) -> None:
        self.device, self.budget = device, budget
        self.used = self.moved = 0  #: bytes and copies of this step
        self.looks = False  #: whether it follows how much of the device is in use
        self.peak = 0  #: the most that was found so in this step
        self.refused = False  #: the host had no more memory in this step
        self.lock = threading.RLock()  # a collection of garbage may come back here
        self._pool: Any = None
        self._nothing: Dict[Any, Any] = {}  # a tensor of each type, without memory
        self._copies: "weakref.WeakValueDictionary[Any, Copy]" = weakref.WeakValueDictionary()

    def begin(self) -> None:
        """A step begins."""
        self.used = self.moved = self.peak = 0
        self.refused = False

    def look(self) -> None:
        """Notes how much of the device is in use, if anyone wants to know."""
        if self.looks:
            self.peak = max(self.peak, _usage.on_device(self.device))

    def prepare(self) -> None:
        """Makes the pool. RuntimeError where there are no pages of host memory."""
        with self.lock:
            if self._pool is None:
                self._pool = _host_memory._pool(self.device)

    def pack(self, tensor: Any, storage: Any) -> Any:
        """A Moved, or what kept() returns. `storage`: what movable() has returned for it."""
        self.look()
        raw, owner = _raw_stream(self.device), tensor if tensor._base is None else tensor._base
        key = (storage._cdata, id(owner), tensor._version, raw)
        with self.lock:
            copy = self._copies.get(key)
            if copy is None or copy.owner() is not owner:
                copy = self._copied(owner, storage)
                if copy is None:
                    return kept(tensor)
                self._copies[key] = copy
            return Moved(copy, tensor, self._counter_of(tensor))

    # Shares the version of the tensor, and not its memory.
    def _counter_of(self, tensor: Any) -> Any:
        counter = tensor.detach()
        counter.data = self._empty(tensor.dtype)
        return counter

    def _empty(self, dtype: Any) -> Any:
        if dtype not in self._nothing:
            self._nothing[dtype] = torch.empty(0, dtype=dtype, device=torch.device("cuda", self.device))
        return self._nothing[dtype]

    def _copied(self, owner: Any, storage: Any) -> Optional[Copy]:
        if self.used >= self.budget or self.refused or not _quiet():
            return None
        if _host_memory._in_host(self.device, storage.data_ptr()):
            return None
        self.prepare()
        size = storage.nbytes()
        host = self._allocated(size)
        if host is None:
            return None
        current = torch.cuda.current_stream(self.device)
        whole = torch.empty(0, dtype=torch.uint8, device=host.device).set_(storage, 0, (size,), (1,))
        host.copy_(whole, non_blocking=True)
        whole.record_stream(current)  # it may be another stream's, and go before the copy is done
        self.used += size
        self.moved += 1
        return Copy(self, owner, host, current)

    def _allocated(self, size: int) -> Any:
        try:
            with torch.cuda.use_mem_pool(self._pool, self.device):
                return torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", self.device))
        except torch.OutOfMemoryError:
            self.refused = True
            return None


def _quiet() -> bool:
    """Neither a backward pass, whose recomputed tensors are read at once, nor a capture."""
    return torch._C._current_graph_task_id() == -1 and not torch.cuda.is_current_stream_capturing()
