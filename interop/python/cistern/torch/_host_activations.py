"""What the backward pass needs, in the host's memory: as much as the device has no room for.

    offload = cistern.torch.host_activations()      # with enable(overflow="64GiB")
    for batch in batches:
        with offload:                               # one step
            model(batch).backward()
        optimizer.step()
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, List, NamedTuple, Optional

from .. import _arguments
from .._arguments import Size
from . import _host_memory, _usage
from ._budget import Adapting


class MovedActivations(NamedTuple):
    """A step of host_activations() on one device."""

    moved: int  #: bytes that went to the host's memory
    tensors: int  #: copies that were made for that
    budget: int  #: bytes that the next step may move


class HostActivations:
    """A context manager that host_activations() makes. Each `with` is one step; it may be used again, within
    itself, and by several threads. RuntimeError without cistern.torch.enable() in its native mode, or without
    overflow if the budget is to follow it."""

    def __init__(self, budget: Optional[int], device: Optional[int]) -> None:
        self._budget, self._only = budget, device
        self._stores: Dict[int, Any] = {}
        self._adapting: Dict[int, Adapting] = {}
        self._lock = threading.RLock()
        self._open = 0
        self._threads = threading.local()

    def __enter__(self) -> HostActivations:
        with self._lock:
            if self._open == 0:
                self._begin()
            self._open += 1
        hooks = self._hooks()
        try:
            hooks.__enter__()
        except BaseException:
            self._leave(failed=True)
            raise
        self._stack().append(hooks)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._stack().pop().__exit__(kind, error, trace)
        self._leave(failed=kind is not None)

    def last_step(self, device: Any = None) -> MovedActivations:
        """What the last step, or the one that is open, moved from `device`, or the current one. RuntimeError as of
        the class."""
        store = self._stores.get(_host_memory._index(device))
        if store is None:
            return MovedActivations(0, 0, self._budget or 0)
        return MovedActivations(store.used, store.moved, store.budget)

    def _stack(self) -> List[Any]:
        if not hasattr(self._threads, "stack"):
            self._threads.stack = []
        stack: List[Any] = self._threads.stack
        return stack

    # A step that moves nothing has no hooks, and costs nothing.
    def _hooks(self) -> Any:
        if self._budget is None and not any(store.budget for store in self._stores.values()):
            return contextlib.nullcontext()
        import torch

        from . import _saved

        stores, kept = self._stores, _saved.kept

        # It is called for most tensors of a large model, and so each step of it counts.
        def pack(tensor: Any) -> Any:
            device = tensor.get_device()
            store = stores.get(device)
            if store is not None and store.full:
                return kept(tensor)
            storage = _saved.movable(tensor)
            if storage is None or self._only not in (None, device):
                return kept(tensor)
            return self._store(device).pack(tensor, storage)

        def unpack(packed: Any) -> Any:
            tensor = _saved.unpack(packed)
            for store in stores.values():
                store.look_ahead()
            return tensor

        return torch.autograd.graph.saved_tensors_hooks(pack, unpack)

    def _store(self, device: int) -> Any:
        from . import _store

        store = self._stores.get(device)
        if store is None:
            store = self._stores.setdefault(device, _store.Store(device, self._budget or 0))
        return store

    # Pre: the lock is held.
    def _begin(self) -> None:
        import torch

        device = _host_memory._index(self._only)
        torch.cuda.memory_reserved(device)  # its allocator is there from now on
        if self._budget is None:
            self._find_devices(device)
        elif self._budget > 0:
            self._store(device).prepare()
        for index, store in self._stores.items():
            store.begin()
            if self._budget is None:
                self._adapting[index].begin(store)

    def _find_devices(self, needed: int) -> None:
        if needed in self._adapting:
            return
        there = _usage.all_figures()
        if needed not in there or there[needed].host_bytes == 0:
            raise RuntimeError(
                f"cistern.torch: host_activations() follows overflow, which is off on device {needed}: call "
                'cistern.torch.enable(overflow="64GiB"), or say how many bytes are to be moved')
        for index in there:
            self._follow(index)

    def _follow(self, device: int) -> None:
        if self._only in (None, device) and device not in self._adapting:
            self._adapting[device] = Adapting()
            self._store(device)

    def _leave(self, failed: bool) -> None:
        with self._lock:
            self._open -= 1
            if self._open > 0:
                return
            for store in self._stores.values():
                store.end()
            if self._budget is not None:
                return
            for index, adapting in self._adapting.items():
                adapting.end(self._stores[index], failed)
            for index in _usage.all_figures():
                self._follow(index)


def host_activations(bytes: Optional[Size] = None, device: Any = None) -> HostActivations:
    """A context manager for a step of training, around the forward and the backward pass: the tensors that
    autograd saves first lie in the host's memory until the backward pass needs them. They are copied there and
    back once, on a stream beside the work, and nothing waits on the host. Values are the same to the last bit.

    `bytes`: tensors are moved until so many bytes are, in each step and on each device, as an int or as "8GiB".
    None: as many as the step before needed beyond what the device has, which needs enable(overflow=...); use one
    such object for all steps. A step that fits moves nothing. `device`: the only one whose tensors move.

    Parameters, what is smaller than 1 MiB, and what autograd saves in a backward pass or in a capture stay.
    docs/overflow.md says when to use it. RuntimeError before cistern.torch.enable() in its native mode, and where
    there is no such memory; ValueError and TypeError for bytes that are none."""
    _host_memory._library()
    budget = None if bytes is None else _arguments.size(bytes, "bytes")
    return HostActivations(budget, None if device is None else _host_memory._index(device))
