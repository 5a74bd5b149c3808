"""Pinned host memory, for copies between host and device: docs/pinned.md."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from typing import Any, Callable, Dict, Optional, SupportsIndex

from . import _arguments
from ._arguments import StreamLike
from ._native import PinnedStatisticsStruct, check, lib, made, value_of
from ._owned import Owned, check_block, free_address, handed_out, owner, state
from .buffer import OwnedBuffer
from .statistics import Stat

_UNLIMITED = (1 << 64) - 1  # the C API's limit for none


@dataclass(frozen=True)
class PinnedStatistics:
    """A consistent picture of one moment, exact.

    allocation            blocks that the program holds
    segment               pieces of memory that the system has pinned
    active                blocks held, or freed and still used by queued work
    requested_bytes       as the program asked for, of the blocks that it holds
    allocated_bytes       of these blocks, rounding included
    active_bytes          of the active blocks
    reserved_bytes        of the segments
    num_host_alloc        calls that pinned memory
    num_host_free         calls that gave it back
    num_alloc_retries     requests that had to give memory back before they could go on
    num_ooms              requests that were refused
    num_waits             times the host waited for queued work
    num_misuses           wrong frees
    host_bytes            host memory that the bookkeeping uses
    """

    allocation: Stat
    segment: Stat
    active: Stat
    requested_bytes: Stat
    allocated_bytes: Stat
    active_bytes: Stat
    reserved_bytes: Stat
    num_host_alloc: int
    num_host_free: int
    num_alloc_retries: int
    num_ooms: int
    num_waits: int
    num_misuses: int
    host_bytes: int


class PinnedBuffer(OwnedBuffer):
    """A block of pinned memory, made by Pinned.buffer. numpy.frombuffer and others read and write
    its view(). It is freed by free(), at the end of a `with`, or when nothing refers to it. Its
    views are no longer valid then, and any other use is an InvalidHandleError."""

    def __init__(self, allocator: Owned, size: int) -> None:
        self._size = size
        owner(allocator, "a PinnedBuffer", "Pinned.buffer")
        address = made(lib.cistern_pinned_allocate, allocator.value, size)
        super().__init__("a pinned buffer", allocator, address, lib.cistern_pinned_free,
                         lib.cistern_pinned_record_stream)

    @property
    def size(self) -> int:
        """As asked for, in bytes."""
        return self._size

    def view(self) -> memoryview:
        """The bytes, which may be read and written while this exists. A reference to the view keeps
        this alive too."""
        if self.address == 0:
            return memoryview(b"")
        array = (ctypes.c_char * self._size).from_address(self.address)
        array._kept = self  # type: ignore[attr-defined]
        return memoryview(array).cast("B")

    def __repr__(self) -> str:
        return f"<cistern.PinnedBuffer of {self._size:,} bytes at {self._owned.raw:#x}{state(self._owned)}>"


class Pinned:
    """The pinned host memory of an allocator: Allocator.pinned. Any thread may call its methods.
    Sizes are in bytes, addresses are ints of host memory. HostOutOfMemoryError has the figures."""

    def __init__(self, allocator: Owned) -> None:
        self._allocator = owner(allocator, "a Pinned", "Allocator.pinned")

    def allocate(self, size: SupportsIndex) -> int:
        """The address of `size` bytes, 512-byte aligned; 0 for 0 bytes. Freed by free()."""
        handle = self._allocator.value
        address = made(lib.cistern_pinned_allocate, handle, _arguments.whole(size, "size"))
        return handed_out(lib.cistern_pinned_free, handle, address)

    def buffer(self, size: SupportsIndex) -> PinnedBuffer:
        """`size` bytes as an object that frees itself. HostOutOfMemoryError as of allocate()."""
        return PinnedBuffer(self._allocator, _arguments.whole(size, "size"))

    def free(self, address: SupportsIndex) -> None:
        """Takes a block back. It is free at once, or, if streams use it, when the work queued on
        them by now is complete. 0 is a no-op. InvalidPointerError if it is not the address of an
        allocated block."""
        free_address(lib.cistern_pinned_free, self._allocator.value, _arguments.whole(address, "address"))

    def record_stream(self, address: SupportsIndex, stream: StreamLike) -> None:
        """Says that work queued on `stream` uses the block at `address`. InvalidPointerError if it is
        not the address of an allocated block."""
        self._about(lib.cistern_pinned_record_stream, address, _arguments.stream(stream))

    def block_size(self, address: SupportsIndex) -> int:
        """The usable bytes of the allocated block at `address`. InvalidPointerError if there is none."""
        size = ctypes.c_size_t()
        self._about(lib.cistern_pinned_block_size, address, ctypes.byref(size))
        return size.value

    def _about(self, call: Callable[..., int], address: SupportsIndex, *arguments: Any) -> None:
        """A call about a block."""
        handle, number = self._allocator.value, _arguments.whole(address, "address")
        check_block(call(handle, number, *arguments), "cistern_pinned_free", handle, number)

    def empty_cache(self) -> None:
        """Gives wholly free memory back to the system."""
        check(lib.cistern_pinned_empty_cache(self._allocator.value))

    @property
    def limit(self) -> Optional[int]:
        """The most that may be pinned, in bytes; None, as at first, for no limit. Memory that is
        already pinned beyond it stays until it is freed."""
        size = int(value_of(ctypes.c_uint64, lib.cistern_pinned_limit, self._allocator.value))
        return None if size == _UNLIMITED else size

    @limit.setter
    def limit(self, size: Optional[SupportsIndex]) -> None:
        bytes_ = _UNLIMITED if size is None else _arguments.whole(size, "limit")
        check(lib.cistern_pinned_set_limit(self._allocator.value, bytes_))

    def stats(self) -> PinnedStatistics:
        """The statistics of pinned memory, which are separate from those of device memory."""
        struct = PinnedStatisticsStruct(size=ctypes.sizeof(PinnedStatisticsStruct))
        check(lib.cistern_pinned_statistics(self._allocator.value, ctypes.byref(struct)))
        values: Dict[str, Any] = {}
        for field in fields(PinnedStatistics):
            value = getattr(struct, field.name)
            values[field.name] = (value if isinstance(value, int) else
                                  Stat(value.current, value.peak, value.allocated, value.freed))
        return PinnedStatistics(**values)

    def reset_peak_stats(self) -> None:
        """Sets every peak to its current value."""
        check(lib.cistern_pinned_reset_peak_statistics(self._allocator.value))

    def __repr__(self) -> str:
        return f"<cistern.Pinned{state(self._allocator)}>"
