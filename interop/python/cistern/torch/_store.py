"""The copies of one device's tensors in the host's memory, and how many may be made in a step.

Copies are queued on a lane, a stream beside the work, so that both go on at once. The stream of the work waits for a
copy only when it needs what the copy leaves or brings:

- A tensor that is copied out stays alive until memory is short, or the backward pass begins. Then its stream waits
  for the copy, on the device, and the memory is free in the stream's order.
- In the backward pass the tensors that are needed next are brought back as soon as there is room for them.
"""

from __future__ import annotations

import collections
import threading
import weakref
from typing import Any, Deque, Dict, List, Optional, Tuple

import torch

from . import _host_memory, _saved, _usage

#: Whether copies run beside the work. Else they are queued on the stream of the work itself.
OVERLAPS = True
#: Of the device's capacity; with less than that free, nothing that was copied out stays alive.
_SHORT = 0.04
_LEAST_SHORT = 256 << 20
#: So many bytes may be on their way back at once.
_MOST_ON_THE_WAY = 512 << 20
_lanes: Dict[int, Any] = {}
_stores: "List[weakref.ref[Store]]" = []  # those that may have something to let go of; replaced, never changed


def _follow_shortages(store: "Store") -> None:
    global _stores
    alive = [each for each in _stores if each() is not None]
    if weakref.ref(store) not in alive:
        _stores = [*alive, weakref.ref(store)]
        _usage.when_short(_let_go_on)


def _let_go_on(device: int) -> int:
    """Of the device that is short of memory, for any thread that asks for some."""
    stores = [each() for each in _stores]
    return int(any([each.let_go() > 0 for each in stores if each is not None and each.device == device]))


class Store:
    """Thread-safe."""

    def __init__(self, device: int, budget: int) -> None:
        self.device, self.budget = device, budget
        self.used = self.moved = 0  #: bytes and copies of this step
        self.peak = 0  #: the most of the device that was found in use in this step, but for what may go
        self.capacity = 0  #: of the device, for this process
        self.on_the_way = 0  #: bytes that are being brought back
        self.refused = False  #: the host had no more memory in this step
        self.lock = threading.RLock()  # a collection of garbage may come back here
        self._pool: Any = None
        self._lane: Any = None
        self._nothing: Dict[Any, Any] = {}  # a tensor of each type, without memory
        self._copies: "weakref.WeakValueDictionary[Any, _saved.Copy]" = weakref.WeakValueDictionary()
        self._order: List["weakref.ref[_saved.Copy]"] = []  # those that were not asked for yet, as they were made
        self._leaving: Deque[Tuple[Any, Any, Any]] = collections.deque()  # bytes, the copy's end, their stream
        self._leaving_bytes = 0

    def begin(self) -> None:
        """A step begins."""
        with self.lock:
            self.used = self.moved = self.peak = 0
            self.refused = False
            if self.budget > 0:
                self.capacity = _usage.capacity(self.device)
            self._order = [each for each in self._order if each() is not None]

    def prepare(self) -> None:
        """Makes the pool. RuntimeError where there are no pages of host memory."""
        with self.lock:
            if self._pool is None:
                self._pool = _host_memory._pool(self.device)
                # Of the whole process: an allocator follows each stream.
                if self.device not in _lanes:
                    _lanes[self.device] = torch.cuda.Stream(self.device)
                self._lane = _lanes[self.device]

    # ---- Out -------------------------------------------------------------------------------------

    def pack(self, tensor: Any, storage: Any) -> Any:
        """A Moved, or what kept() returns. `storage`: what movable() has returned for it."""
        raw = torch._C._cuda_getCurrentRawStream(self.device)
        owner = tensor if tensor._base is None else tensor._base
        key = (storage._cdata, id(owner), tensor._version, raw)
        with self.lock:
            self._look()
            copy = self._copies.get(key)
            if copy is None or copy.owner() is not owner:
                copy = self._copied(owner, storage)
                if copy is None:
                    return _saved.kept(tensor)
                self._copies[key] = copy
            return _saved.Moved(copy, tensor, self._counter_of(tensor))

    # Shares the version of the tensor, and not its memory.
    def _counter_of(self, tensor: Any) -> Any:
        counter = tensor.detach()
        if tensor.dtype not in self._nothing:
            self._nothing[tensor.dtype] = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        counter.data = self._nothing[tensor.dtype]
        return counter

    def _copied(self, owner: Any, storage: Any) -> Optional[_saved.Copy]:
        if self.used >= self.budget or self.refused or not _quiet():
            return None
        if _host_memory._in_host(self.device, storage.data_ptr()):
            return None
        self.prepare()
        stream = torch.cuda.current_stream(self.device)
        lane = self._lane if OVERLAPS else stream
        host = self._allocated(storage.nbytes(), lane)
        if host is None:
            return None
        whole = torch.empty(0, dtype=torch.uint8, device=host.device).set_(storage, 0, (storage.nbytes(),), (1,))
        self._leaving.append((whole, self.queue_copy(host, whole, stream), stream))
        self._leaving_bytes += whole.numel()
        if OVERLAPS:
            _follow_shortages(self)
        self.used += whole.numel()
        self.moved += 1
        copy = _saved.Copy(self, owner, host, lane)
        self._order.append(weakref.ref(copy))
        if not OVERLAPS:
            self.let_go()
        return copy

    def _allocated(self, size: int, lane: Any) -> Any:
        try:
            with torch.cuda.use_mem_pool(self._pool, self.device), torch.cuda.stream(lane):
                return torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", self.device))
        except torch.OutOfMemoryError:
            self.refused = True
            return None

    def queue_copy(self, to: Any, of: Any, stream: Any) -> Any:
        """Queues it behind what the stream has to do now. Returns the event of its end; None if it is queued on
        the stream itself. Under the lock."""
        if not OVERLAPS:
            to.copy_(of, non_blocking=True)
            return None
        self._lane.wait_stream(stream)
        with torch.cuda.stream(self._lane):
            to.copy_(of, non_blocking=True)
        return self._lane.record_event()

    def lane_is(self, lane: Any) -> bool:
        """Whether copies are queued there."""
        return OVERLAPS and lane == self._lane

    def let_go(self) -> int:
        """Nothing that was copied out stays alive for the copy's sake; but in a capture, which cannot wait for it.
        Returns how many bytes those were."""
        if not self._leaving or torch.cuda.is_current_stream_capturing():
            return 0
        with self.lock:
            gone, self._leaving_bytes = self._leaving_bytes, 0
            while self._leaving:
                whole, end, stream = self._leaving.popleft()
                if end is not None:
                    stream.wait_event(end)
                whole.record_stream(stream)  # it may be another stream's
            return gone

    # ---- Back ------------------------------------------------------------------------------------

    def look_ahead(self) -> None:
        """The backward pass asks for something: what it will ask for next comes back if there is room."""
        with self.lock:
            self.let_go()
            room = self._look() - self._short()
            while OVERLAPS and self._order and self.on_the_way < _MOST_ON_THE_WAY and _quiet(backward=True):
                copy = self._order[-1]()
                if copy is not None and copy.host.numel() > room:
                    return
                self._order.pop()
                if copy is not None:
                    room -= copy.host.numel()
                    with torch.no_grad():
                        copy.fetch()

    # ---- Room ------------------------------------------------------------------------------------

    def _short(self) -> int:
        return max(_LEAST_SHORT, int(self.capacity * _SHORT))

    def _look(self) -> int:
        """The bytes of the device that are free. If they are few, what was copied out goes."""
        used = _usage.on_device(self.device)
        self.peak = max(self.peak, used - self._leaving_bytes)
        if self._leaving and self.capacity - used < self._short():
            used -= self.let_go()
        return self.capacity - used


def _quiet(backward: bool = False) -> bool:
    """No capture; and no backward pass, whose recomputed tensors are read at once, or just that."""
    running = torch._C._current_graph_task_id() != -1
    return running == backward and not torch.cuda.is_current_stream_capturing()
