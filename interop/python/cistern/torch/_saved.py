"""Tensors that autograd saves, in the host's memory until the backward pass asks for them.

A `Copy` has the bytes of one storage. Each tensor that autograd has saved of that storage holds it, as a `Moved`.
So the copy goes when the last of them does. Copies between device and host are queued on the lane of their store
(`_store.py`), and nothing waits for them on the host.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.weak import TensorWeakRef

from . import _host_memory

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


def movable(tensor: Any) -> Any:
    """The tensor's storage, if a copy can stand for it and may free its memory; else None. A parameter stays alive,
    also where one of its views is saved."""
    if type(tensor) is not torch.Tensor or not tensor.is_cuda or tensor.layout != torch.strided or tensor.is_nested:
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

    def __init__(self, store: Any, owner: Any, host: Any, lane: Any) -> None:
        self.store, self.host, self.lane = store, host, lane
        self.owner = TensorWeakRef(owner)
        self.waiting = 0
        self._ahead: Any = None  # on its way to the device: the tensor, the copy's end, the stream that gets it
        self._last: Optional[StorageWeakRef] = None  # the storage that was handed out last
        self._last_stream = -1
        self._held: Any = None  # the same, while others are to ask for it soon

    def fetch(self) -> None:
        """Queues the copy back to the device, for the stream that is current. Does nothing if it is on its way or
        was there already, and where the device is full: then the copy itself is as good."""
        if self._ahead is not None or self._last is not None or not COPY_BACK:
            return
        made = self._room()
        if made is not None:
            stream = torch.cuda.current_stream(self.store.device)
            if not self.store.lane_is(self.lane):
                self._lend_to(stream)
            end = self.store.queue_copy(made, self.host, stream)
            self._ahead = (made, end, stream)
            self.store.on_the_way += made.numel()

    def _lend_to(self, stream: Any) -> None:
        if stream != self.lane:
            _order(stream, None, self.lane)
            self.host.record_stream(stream)

    def _room(self) -> Any:
        try:
            made = torch.empty_like(self.host)
        except torch.OutOfMemoryError:
            return None
        return None if _host_memory._in_host(self.store.device, made.data_ptr()) else made

    def storage(self, first: bool) -> Any:
        """Its bytes, for the stream that is current. `first`: the tensor asks for the first time."""
        current = torch.cuda.current_stream(self.store.device)
        found = None
        if self._last is not None and self._last_stream == current.cuda_stream:
            found = torch.UntypedStorage._new_with_weak_ptr(self._last.cdata)
        if found is None:
            self._last = None
            self.fetch()
            found = self._arrived(current)
            self._last, self._last_stream = StorageWeakRef(found), current.cuda_stream
        if first:
            self.waiting -= 1
        self._held = found if self.waiting > 0 else None
        return found

    def _arrived(self, current: Any) -> Any:
        if self._ahead is None:
            self._lend_to(current)
            return self.host.untyped_storage()
        made, end, stream = self._ahead
        self._forget_ahead()
        _order(current, end, self.lane)
        if stream != current:
            made.record_stream(current)
        return made.untyped_storage()

    def put_off(self) -> bool:
        """It does not come yet, if it was not asked for. The stream waits for it, and may have its memory then."""
        if self._ahead is None:
            return False
        _, end, stream = self._ahead
        _order(stream, end, self.lane)
        self._forget_ahead()
        return True

    def _forget_ahead(self) -> None:
        with self.store.lock:
            self.store.on_the_way -= self._ahead[0].numel()
        self._ahead = None

    # The stream may get its memory again at once, and so it has to wait for what writes there.
    def __del__(self) -> None:
        self.store.note_need()
        self.put_off()


def _order(stream: Any, end: Any, lane: Any) -> None:
    """Work that is queued on the stream from now on waits for the event, or for all of the lane without one."""
    if stream == lane or torch.cuda.is_current_stream_capturing():
        return
    if end is None:
        stream.wait_stream(lane)
    else:
        stream.wait_event(end)


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
        with torch.no_grad():
            with self._copy.store.lock:
                storage = self._copy.storage(self._first)
                self._first = False
            return torch.empty(0, dtype=self._dtype, device=storage.device).set_(storage, *self._place)
