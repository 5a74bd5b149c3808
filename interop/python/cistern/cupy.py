"""CuPy on Cistern.

    import cistern.cupy
    cistern.cupy.enable()      # what CuPy allocates from now on comes from Cistern

The memory belongs to the device and the stream that are current in CuPy. It serves that stream
again, in its order, as soon as the array is gone. The page docs/cookbook.md has a program, and
lists the differences.
"""

from __future__ import annotations

import gc
from typing import Any, Callable, Optional

import cupy  # type: ignore[import-not-found, import-untyped, unused-ignore]

from .allocator import default
from .errors import InvalidArgumentError, OutOfMemoryError

__all__ = ["disable", "enable", "enabled", "malloc"]

_PER_THREAD = 2  # cudaStreamPerThread
_before: Optional[Callable[[int], Any]] = None


def malloc(size: int) -> Any:
    """A cupy.cuda.MemoryPointer to `size` bytes of Cistern's, for cupy.cuda.using_allocator(malloc)
    if only some arrays are to use Cistern.

    If there is no room, it raises the same error as CuPy's own allocators. That is
    cupy.cuda.memory.OutOfMemoryError, which is a MemoryError; its cause is Cistern's report.
    InvalidArgumentError on the per-thread default stream: that is one handle for a stream of each
    thread, and memory has an order on one stream.
    """
    stream = cupy.cuda.get_current_stream().ptr
    if stream == _PER_THREAD:
        raise InvalidArgumentError("cistern.cupy: the current stream is the per-thread default stream, "
                                   "which is another one in each thread; use a cupy.cuda.Stream()")
    return _memory(size, cupy.cuda.device.get_device_id(), stream)


def _memory(size: int, device: int, stream: int) -> Any:
    allocator = default(device)
    try:
        block = allocator.buffer(size, stream)
    except OutOfMemoryError:
        gc.collect()  # arrays that only a cycle of references keeps, as CuPy's own pool does
        try:
            block = allocator.buffer(size, stream)
        except OutOfMemoryError as error:
            held = allocator.stats().all.allocated_bytes.current
            raise cupy.cuda.memory.OutOfMemoryError(size, held) from error
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(block.address, size, block, device), 0)


def enabled() -> bool:
    """Whether CuPy allocates here. A using_allocator() overrides that."""
    return _before is not None


def enable() -> None:
    """Puts Cistern under CuPy: every thread, every device. A second call changes nothing.

    Existing arrays stay in the memory that they have. ValueError within a using_allocator().
    """
    global _before
    if _before is None:
        before = cupy.cuda.get_allocator()
        cupy.cuda.set_allocator(malloc)
        _before = before


def disable() -> None:
    """Restores CuPy's previous allocator. Arrays in Cistern's memory stay until they go."""
    global _before
    if _before is not None:
        cupy.cuda.set_allocator(_before)
        _before = None
