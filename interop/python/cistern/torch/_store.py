"""The copies of one device's tensors in the host's memory, and how many may be made in a step.

Copies are queued on a lane, a stream beside the work, so that both go on at once. The stream of the work waits for a
copy only when it needs what the copy leaves or brings:

- A tensor that is copied out stays alive until memory is short, or the backward pass begins. Then its stream waits
  for the copy, on the device, and the memory is free in the stream's order. It is not let go as soon as the copy is
  complete: memory would be free at another place in each step, and the allocator would move its pages each time.
- In the backward pass the tensors that are needed next are brought back as soon as there is room for them: in what
  the device has beyond what the rest of the backward pass needs. The last step tells that.
"""

from __future__ import annotations

import collections
import itertools
import threading
import weakref
from typing import Any, Deque, Dict, List, Optional, Tuple

import torch

from . import _host_memory, _saved, _usage

#: Whether copies run beside the work. Else they are queued on the stream of the work itself.
OVERLAPS = True
#: So many bytes may be on their way back at once; or twice as many as the largest copy has, if that is more.
_AHEAD = 256 << 20
#: The backward pass is looked at each time that it has asked for so many tensors more.
_EVERY = 4
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
    alive = [each() for each in _stores]
    stores = [each for each in alive if each is not None and each.device == device]
    return int(any(sum(map(step, stores)) > 0 for step in (Store.let_go, Store.put_off)))


class Store:
    """Thread-safe."""

    def __init__(self, device: int, budget: int) -> None:
        self.device, self.budget = device, budget
        self.used = self.moved = 0  #: bytes and copies of this step
        self.need = 0  #: the most of the device that this step needed at a time, but for what may go
        self.base = 0  #: what there was when it began
        self.capacity = 0  #: of the device, for this process
        self.on_the_way = 0  #: bytes that are being brought back
        self.slack = 0  #: bytes of the capacity that nothing is brought back to
        self.refused = False  #: the host had no more memory in this step
        self.lock = threading.RLock()  # a collection of garbage may come back here
        self._pool: Any = None
        self._lane: Any = None
        self._nothing: Dict[Any, Any] = {}  # a tensor of each type, without memory
        self._copies: "weakref.WeakValueDictionary[Any, _saved.Copy]" = weakref.WeakValueDictionary()
        self._order: List["weakref.ref[_saved.Copy]"] = []  # those that were not asked for yet, as they were made
        self._leaving: Deque[Tuple[Any, Any, Any]] = collections.deque()  # bytes, the copy's end, their stream
        self._leaving_bytes = 0
        self._ahead: List["weakref.ref[_saved.Copy]"] = []  # those that are being brought back, the next one first
        self._asked = 0  # tensors of the backward pass
        self._largest = 0  # bytes of a copy
        self._needs: List[int] = []  # of this backward pass, each time that it was looked at
        self._later: List[int] = []  # of the last one: the most from then on

    def begin(self) -> None:
        """A step begins."""
        with self.lock:
            self.used = self.moved = self.need = 0
            self.refused = False
            self.capacity = _usage.capacity(self.device)
            _usage.take_peak(self.device)
            self.base = _usage.take_peak(self.device)  # of no time
            self._order = [each for each in self._order if each() is not None]
            self._asked, self._needs = 0, []

    def end(self) -> None:
        """It ends."""
        with self.lock:
            self.note_need()
            self.let_go()
            self._ahead = []
            self._later = list(itertools.accumulate(reversed([*self._needs[1:], 0]), max))[::-1]

    @property
    def full(self) -> bool:
        """Whether no more is moved in this step."""
        return self.used >= self.budget or self.refused

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
        if self.full or not _quiet():
            return None
        if _host_memory._in_host(self.device, storage.data_ptr()):
            return None
        self.note_need()
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
        self._largest = max(self._largest, whole.numel())
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
            self.note_need()
            gone, self._leaving_bytes = self._leaving_bytes, 0
            while self._leaving:
                whole, end, stream = self._leaving.popleft()
                if end is not None:
                    stream.wait_event(end)
                whole.record_stream(stream)  # it may be another stream's
                del whole
            _usage.take_peak(self.device)  # what went is in no peak from now on
            return gone

    # ---- Back ------------------------------------------------------------------------------------

    def look_ahead(self) -> None:
        """The backward pass asks for something: what it will ask for next comes back if there is room."""
        if not self._order or not OVERLAPS:
            return
        if not _quiet(backward=True):
            return
        self._asked += 1
        if (self._asked - 1) % _EVERY != 0:
            return
        with self.lock:
            self.let_go()
            self._needs.append(self.note_need())
            if len(self._needs) <= len(self._later):
                now = _usage.take_peak(self.device) - self.on_the_way
                later = self._later[len(self._needs) - 1]
                self._bring_back(self.capacity - self.slack - max(now, later) - self.on_the_way)

    def _bring_back(self, room: int) -> None:
        most = max(_AHEAD, 2 * self._largest)
        while self._order and self.on_the_way < most:
            copy = self._order[-1]()
            if copy is not None and copy.host.numel() > room:
                return
            last = self._order.pop()
            if copy is not None:
                room -= copy.host.numel()
                with torch.no_grad():
                    copy.fetch()
                self._ahead.append(last)

    def put_off(self) -> int:
        """Copies that are being brought back, and were not asked for, do not come yet. Returns their bytes."""
        if torch.cuda.is_current_stream_capturing():
            return 0
        with self.lock:
            before = self.on_the_way
            if before > 0:
                self.note_need()
            for each in reversed(self._ahead):
                copy = each()
                if copy is not None and copy.put_off():
                    self._order.append(each)
            self._ahead = []
            if self.on_the_way < before:
                _usage.take_peak(self.device)
            return before - self.on_the_way

    def note_need(self) -> int:
        """Called before what may go, or lies on the host, changes. Returns the most that was needed since the last
        call, but for what may go."""
        with self.lock:
            need = _usage.take_peak(self.device) - self._leaving_bytes - self.on_the_way
            self.need = max(self.need, need)
            return need


def _quiet(backward: bool = False) -> bool:
    """No capture; and no backward pass, whose recomputed tensors are read at once, or just that."""
    running = torch._C._current_graph_task_id() != -1
    return running == backward and not torch.cuda.is_current_stream_capturing()
