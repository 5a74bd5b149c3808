"""Pools: memory that is kept apart."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, ContextManager, NamedTuple, Optional, SupportsIndex

from . import _arguments
from ._arguments import StreamLike
from ._contents import Contents
from ._location import Location
from ._native import PoolIdStruct, PoolOptions, check, lib, made, value_of
from ._owned import Open, Owned, Scoped, check_block, handed_out, owner, state
from .buffer import Buffer
from .errors import CisternError
from .hold import Hold
from .sleeping import SleepReport, WakeReport, sleep, wake


class PoolId(NamedTuple):
    """The name of a pool in this process; PyTorch's MempoolId_t."""

    uuid: int
    uid: int


def id_by(call: Callable[[int, Any], int], handle: int) -> PoolId:
    """The result of cistern_pool_id or cistern_capture_pool_id."""
    struct = PoolIdStruct()
    check(call(handle, ctypes.byref(struct)))
    return PoolId(struct.uuid, struct.uid)


def _limit(limit: Optional[SupportsIndex]) -> int:
    return (1 << 64) - 1 if limit is None else _arguments.whole(limit, "limit")


class Pool(Scoped):
    """Made by Allocator.pool. `use_on_oom`: the default pool takes memory from it rather than be
    out of memory; `no_split`: each block has a segment of its own; `one_handle`: the same, and the
    segment is one handle of the driver, for libraries that look at the first handle of a range only;
    `location`: Location.HOST for memory of the host's, which goes with none of the three; `limit`: as
    set_limit's.

    It is destroyed by destroy(), at the end of a `with`, or when nothing refers to it. Its blocks stay
    valid then, and are freed as before. Any use of it after that is an InvalidHandleError.
    """

    def __init__(self, allocator: Owned, *, use_on_oom: bool = False, no_split: bool = False,
                 location: Location = Location.DEVICE, one_handle: bool = False,
                 limit: Optional[SupportsIndex] = None) -> None:
        self._allocator = owner(allocator, "a Pool", "Allocator.pool")
        options = PoolOptions(size=ctypes.sizeof(PoolOptions),
                              use_on_oom=_arguments.flag(use_on_oom, "use_on_oom"),
                              no_split=_arguments.flag(no_split, "no_split"),
                              location=_arguments.location(location),
                              one_handle=_arguments.flag(one_handle, "one_handle"))
        most = _limit(limit)
        handle = made(lib.cistern_pool_create, allocator.value, ctypes.byref(options))
        self._owned = Owned("a pool", handle, lib.cistern_pool_destroy, handle, parent=allocator)
        if limit is not None:
            check(lib.cistern_pool_set_limit(handle, most))

    @property
    def id(self) -> PoolId:
        """Its name in this process."""
        return id_by(lib.cistern_pool_id, self._owned.value)

    @property
    def use_count(self) -> int:
        """How many users it has: this object, captures into it, and scopes."""
        return int(value_of(ctypes.c_int, lib.cistern_pool_use_count, self._owned.value))

    def allocate(self, size: SupportsIndex, stream: StreamLike = None, *,
                 alignment: SupportsIndex = 512) -> int:
        """The address of `size` bytes of this pool for use on `stream`, whatever scopes are open.
        `alignment`: as Allocator.allocate's. Freed by Allocator.free. OutOfMemoryError says who holds
        what."""
        pool, wanted = self._owned.value, _arguments.whole(size, "size")
        on = _arguments.stream(stream)
        if alignment == 512:
            address = made(lib.cistern_pool_allocate, pool, wanted, on)
        else:
            address = made(lib.cistern_pool_allocate_aligned, pool, wanted,
                           _arguments.whole(alignment, "alignment"), on)
        return handed_out(lib.cistern_free, self._allocator.value, address)

    def buffer(self, size: SupportsIndex, stream: StreamLike = None) -> Buffer:
        """`size` bytes for use on `stream`, as an object that frees itself. OutOfMemoryError as of
        allocate()."""
        return Buffer(self._allocator, self.allocate(size, stream))

    def empty_cache(self) -> None:
        """Returns its wholly free memory to the device, except the memory of a capture."""
        check(lib.cistern_pool_empty_cache(self._owned.value))

    def set_limit(self, limit: Optional[SupportsIndex]) -> None:
        """The most bytes of blocks that the pool may have in use: those that the program holds, and those
        that wait for queued work. A request beyond that is an OutOfMemoryError that names the pool.
        None: no limit."""
        check(lib.cistern_pool_set_limit(self._owned.value, _limit(limit)))

    def hold(self) -> Hold:
        """Holds all of the pool's memory where it is, present and future, as Allocator.hold does. Until
        the release the pool stays, too."""
        return Hold(self._owned, lib.cistern_pool_hold, self._owned.value)

    def scope(self) -> ContextManager[Pool]:
        """Until the end, the calling thread's allocations on any stream come from the pool. Scopes
        nest; the innermost counts. InvalidStateError for a second scope of this thread and pool."""
        return Open(self, lib.cistern_pool_scope_begin, lib.cistern_pool_scope_end)

    def stream_scope(self, stream: StreamLike) -> ContextManager[Pool]:
        """Until the end, the allocations of any thread on `stream` come from the pool. A pool has at most
        one such scope at a time: InvalidStateError for a second one."""
        return Open(self, lib.cistern_pool_stream_scope_begin, lib.cistern_pool_stream_scope_end,
                    _arguments.stream(stream))

    def sleep(self, *, contents: Contents = Contents.SAVE,
              after: Optional[StreamLike] = None) -> SleepReport:
        """cistern.sleep for this pool alone, with the same `contents` and `after`."""
        return sleep(self, contents=contents, after=after)

    def wake(self, *, keep_host_memory: bool = True) -> WakeReport:
        """cistern.wake for this pool alone, with the same `keep_host_memory`."""
        return wake(self, keep_host_memory=keep_host_memory)

    @property
    def asleep(self) -> bool:
        """Whether it sleeps."""
        return bool(value_of(ctypes.c_int, lib.cistern_pool_is_asleep, self._owned.value))

    def set_contents(self, address: SupportsIndex, contents: Contents) -> None:
        """Sets the fate of the bytes of the block at `address`, until its free: `contents` then counts
        for it, and not the argument of sleep(). InvalidPointerError if it is not the address of an allocated
        block of a pool."""
        pool, number = self._owned.value, _arguments.whole(address, "address")
        status = lib.cistern_pool_set_contents(pool, number, Contents(contents))
        check_block(status, "cistern_free", self._allocator.value, number)

    def saved(self, address: SupportsIndex, size: SupportsIndex) -> Optional[bytes]:
        """The `size` bytes that lay at `address` when a pool of the allocator fell asleep. None if not all
        of them were saved, or if no such pool sleeps."""
        number, count = _arguments.whole(address, "address"), _arguments.whole(size, "size")
        read, copied = ctypes.create_string_buffer(max(count, 1)), ctypes.c_int()
        check(lib.cistern_pool_copy_saved(self._owned.value, read, number, count, ctypes.byref(copied)))
        return read.raw[:count] if copied.value else None

    def destroy(self) -> None:
        """Lets go of it and empties its cache; a capture into it keeps it. Does nothing if it is
        destroyed already. InvalidStateError while a scope of it is open."""
        self._owned.end()

    def __repr__(self) -> str:
        try:
            return f"<cistern.Pool {{{self.id.uuid}, {self.id.uid}}}>"
        except CisternError:
            return f"<cistern.Pool{state(self._owned)}>"
