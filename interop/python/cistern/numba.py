"""Numba on Cistern.

    import cistern.numba
    cistern.numba.enable()     # before the first use of CUDA; or NUMBA_CUDA_MEMORY_MANAGER=cistern.numba

Device arrays come from Cistern from then on. docs/cookbook.md has a program, and says what differs.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any, Dict

import numba.cuda  # type: ignore[import-not-found, import-untyped, unused-ignore]
import numba.cuda.cudadrv.driver  # type: ignore[import-not-found, import-untyped, unused-ignore]

from . import _native
from .allocator import Allocator, default
from .buffer import Buffer
from .stream import Stream

__all__ = ["MemoryManager", "enable"]

cuda: Any = numba.cuda  # a part of its interface has types, a part has not
driver: Any = numba.cuda.cudadrv.driver
_lock = threading.Lock()
_streams: Dict[int, Stream] = {}


def _stream_of(allocator: Allocator, device: int) -> Stream:
    """A stream that no work is queued on: memory is handed out as this stream's, and waits
    elsewhere."""
    with _lock:
        if device not in _streams:
            _streams[device] = allocator.stream()
        return _streams[device]


def _block(device: int, size: int) -> Buffer:
    """Memory that serves others once the work queued before its free is complete, on whichever
    stream.

    Numba does not say which streams use an array. The device orders Numba's streams, and its
    default one, with the legacy default stream. So an event there, at the free, comes after all of
    them.
    """
    allocator = default(device)
    block = allocator.buffer(size, _stream_of(allocator, device))
    block.record_stream(None)
    return block


class MemoryManager(cuda.HostOnlyCUDAMemoryManager):  # type: ignore[misc, unused-ignore]
    """Numba's interface for memory managers, version 1: device memory is Cistern's, host memory is
    Numba's own. Raises cistern.OutOfMemoryError, a MemoryError, if there is no room."""

    def initialize(self) -> None:
        """Does nothing: the allocator is made at the first request for memory."""

    def memalloc(self, size: int) -> Any:
        """A pointer to `size` bytes of the context's device, which is freed with its last user.
        cistern.OutOfMemoryError if there is no room."""
        block = _block(self.context.device.id, size)
        allocations, address = self.allocations, block.address

        def free() -> None:
            allocations.pop(address, None)
            block.free()

        pointer = driver.AutoFreePointer(weakref.proxy(self.context), ctypes.c_void_p(address), size,
                                         finalizer=free)
        allocations[address] = pointer  # the result counts its users, and refers to it weakly
        return pointer.own()

    def get_memory_info(self) -> Any:
        """The free and the total memory of the device. Memory that Cistern keeps for reuse counts
        as used."""
        free, total = default(self.context.device.id).memory_info()
        return cuda.MemoryInfo(free=free, total=total)

    def get_ipc_handle(self, memory: Any) -> Any:
        """NotImplementedError: the driver's handles cannot pass `memory` in pages to another process."""
        raise NotImplementedError("cistern.numba: memory in pages cannot be passed to another process by "
                                  "the driver's handles; copy it")

    def reset(self) -> None:
        """Ends all arrays of the context, and gives free memory back to the device."""
        super().reset()
        default(self.context.device.id).empty_cache()

    @property
    def interface_version(self) -> int:
        """The version of Numba's interface for memory managers: 1."""
        return 1


#: The name that Numba looks for in the module that NUMBA_CUDA_MEMORY_MANAGER names.
_numba_memory_manager = MemoryManager


def enable() -> None:
    """Makes device memory come from Cistern on each device that Numba does not use yet. A context
    keeps the manager that it was made with."""
    cuda.set_memory_manager(MemoryManager)
