"""Memory that frees itself."""

from __future__ import annotations

import ctypes
from typing import Callable

from . import _arguments
from ._arguments import StreamLike
from ._native import lib
from ._owned import Owned, OwnedBlock, Scoped, owner, state


class OwnedBuffer(Scoped):
    """The common part of Buffer and PinnedBuffer: a block that is freed with
    `free(allocator, address)`. InvalidHandleError once it, or its allocator, is gone."""

    _owned: OwnedBlock

    def __init__(self, what: str, allocator: Owned, address: int, free: Callable[..., int],
                 record_stream: Callable[..., int]) -> None:
        self._allocator = owner(allocator, what, "Allocator.buffer")
        self._record_stream = record_stream
        self._owned = OwnedBlock(what, free, allocator, address)

    @property
    def address(self) -> int:
        """The start of its memory; 0 for an empty buffer."""
        return self._owned.present("address")

    def record_stream(self, stream: StreamLike) -> None:
        """Says that it is also used on `stream`. Once freed it is reusable only when the work
        queued there before the free is complete."""
        self._owned.check_block(self._record_stream(self._allocator.value, self.address,
                                                    _arguments.stream(stream)))

    def free(self) -> None:
        """Frees it. Does nothing if it is free already."""
        self._owned.end()


class Buffer(OwnedBuffer):
    """A block of device memory, made by Allocator.buffer or Pool.buffer. It is freed by free(), at the
    end of a `with`, or when nothing refers to it. Any use after that is an InvalidHandleError. Its
    end is an InvalidPointerError if its block was freed by its address."""

    def __init__(self, allocator: Owned, address: int) -> None:
        super().__init__("a buffer", allocator, address, lib.cistern_free, lib.cistern_record_stream)

    @property
    def size(self) -> int:
        """The usable bytes, which may be a few more than requested."""
        if self.address == 0:
            return 0
        size = ctypes.c_size_t()
        self._owned.check_block(lib.cistern_block_size(self._allocator.value, self.address,
                                                       ctypes.byref(size)))
        return size.value

    def __repr__(self) -> str:
        return f"<cistern.Buffer at {self._owned.raw:#x}{state(self._owned)}>"
