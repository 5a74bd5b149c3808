"""Streams of the device, for programs that call no runtime of their own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, Tuple

from ._native import check, lib, made
from ._owned import Owned, Scoped, owner, state


class Stream(Scoped):
    """Made by Allocator.stream. It is destroyed by destroy(), at the end of a `with`, or when nothing
    refers to it. Destroy it before its allocator: a stream whose allocator is gone is never
    destroyed. InvalidHandleError once either is gone; DeviceError if the driver fails."""

    def __init__(self, allocator: Owned) -> None:
        self._allocator = owner(allocator, "a Stream", "Allocator.stream")
        handle = made(lib.cistern_stream_create, allocator.value)
        self._owned = Owned("a stream", handle, lib.cistern_stream_destroy, allocator.value, handle,
                            parent=allocator)

    @property
    def handle(self) -> int:
        """The cudaStream_t or hipStream_t, as a number."""
        return self._owned.present("handle")

    def __cuda_stream__(self) -> Tuple[int, int]:
        return 0, self.handle

    def synchronize(self) -> None:
        """Waits until all work queued on it is complete. Fails while it is captured, and breaks the
        capture, as a runtime's own does."""
        check(lib.cistern_stream_synchronize(self._allocator.value, self.handle))

    @contextmanager
    def recording(self) -> Iterator[Stream]:
        """Work queued on it, by any thread, is recorded instead of run, and thrown away at the end.
        It serves to try Allocator.capture without a runtime."""
        check(lib.cistern_stream_begin_capture(self._allocator.value, self.handle))
        try:
            yield self
        finally:
            if self._owned.alive:
                check(lib.cistern_stream_end_capture(self._allocator.value, self.handle))

    def destroy(self) -> None:
        """Queued work still completes. Does nothing if it is destroyed already."""
        self._owned.end()

    def __repr__(self) -> str:
        return f"<cistern.Stream {self._owned.raw:#x}{state(self._owned)}>"
