"""The memory of a graph that the program captures and launches with its runtime's own calls."""

from __future__ import annotations

import ctypes
from typing import Optional

from . import _arguments
from ._arguments import StreamLike
from ._native import check, lib, made, value_of
from ._owned import Owned, Scoped, owner, state
from .errors import CisternError
from .pool import Pool, PoolId, id_by


class Capture(Scoped):
    """Made by Allocator.capture, which begins it. The end of a `with` ends it, and keeps the memory in
    place; release() gives it back to the pool when the graph is gone:

        with allocator.capture(stream) as memory:
            ...                                      # requests on the stream are the graph's
        memory.launching(stream)                     # before each launch
        ...
        memory.launched()                            # after it
        memory.release()                             # the graph is gone

    A call in a state that is not for it is an InvalidStateError. After release() each is an
    InvalidHandleError.
    """

    def __init__(self, allocator: Owned, stream: int, pool: Optional[Pool]) -> None:
        owner(allocator, "a Capture", "Allocator.capture")
        if pool is not None and not isinstance(pool, Pool):
            raise TypeError(f"pool must be a cistern.Pool, not {type(pool).__name__}")
        handle = made(lib.cistern_capture_begin, allocator.value, stream,
                      None if pool is None else pool._owned.value)
        self._owned = Owned("a capture", handle, lib.cistern_capture_release, handle,
                            parent=allocator)
        self._under_way = True

    @property
    def pool_id(self) -> PoolId:
        """The pool that it captures or has captured into."""
        return id_by(lib.cistern_capture_pool_id, self._owned.value)

    def include_stream(self, stream: StreamLike) -> None:
        """Memory that is allocated on `stream` belongs to this capture too. Another capture records
        that stream (the body of a conditional node)."""
        check(lib.cistern_capture_include_stream(self._owned.value, _arguments.stream(stream)))

    def end(self) -> None:
        """Says that nothing more is allocated for the graph. InvalidStateError unless it is under
        way."""
        check(lib.cistern_capture_end(self._owned.value))
        self._under_way = False

    def launching(self, stream: StreamLike) -> None:
        """Says that the graph is about to be launched on `stream`. InvalidStateError unless
        captured."""
        check(lib.cistern_capture_launching(self._owned.value, _arguments.stream(stream)))

    def launched(self) -> None:
        """Says that the launch that was announced last is queued, or has failed. InvalidStateError
        unless captured."""
        check(lib.cistern_capture_launched(self._owned.value))

    @property
    def idle(self) -> bool:
        """Whether no launch is announced, and all that were queued are known to be complete."""
        return bool(value_of(ctypes.c_int, lib.cistern_capture_idle, self._owned.value))

    def release(self) -> None:
        """Says that the graph is gone, and ends the capture if it is under way. Its memory returns
        to the pool when the queued launches are complete. Does nothing if it is released
        already."""
        self._owned.end()

    def __exit__(self, *error: object) -> None:
        if self._under_way and self._owned.alive:
            self.end()

    def __repr__(self) -> str:
        try:
            return f"<cistern.Capture into pool {{{self.pool_id.uuid}, {self.pool_id.uid}}}>"
        except CisternError:
            return f"<cistern.Capture{state(self._owned)}>"
