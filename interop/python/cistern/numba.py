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

cuda: Any = numba.cuda  # of whose interface some has types, and some has not
driver: Any = numba.cuda.cudadrv.driver
_lock = threading.Lock()
_streams: Dict[int, Stream] = {}


def _stream_of(allocator: Allocator, device: int) -> Stream:
    """One that no work is queued on: memory is handed out as its own, and waits elsewhere."""
    with _lock:
        if device not in _streams:
            _streams[device] = allocator.stream()
        return _streams[device]


def _block(device: int, size: int) -> Buffer:
    """Memory that serves others once the work queued up to its free is complete, wherever it is.

    Numba says of no array which streams use it. Its streams, and its default one, are those that the
    device orders with the legacy default stream: an event there, at the free, comes after all of them.
    """
    allocator = default(device)
    block = allocator.buffer(size, _stream_of(allocator, device))
    block.record_stream(None)
    return block


class MemoryManager(cuda.HostOnlyCUDAMemoryManager):  # type: ignore[misc, unused-ignore]
    """Numba's interface for memory managers, version 1: device memory is Cistern's, host memory Numba's
    own. Raises cistern.OutOfMemoryError, a MemoryError, where there is no room."""

    def initialize(self) -> None:
        """Nothing: the allocator is made when it is first asked for memory."""

    def memalloc(self, size: int) -> Any:
        block = _block(self.context.device.id, size)
        allocations, address = self.allocations, block.address

        def free() -> None:
            allocations.pop(address, None)
            block.free()

        pointer = driver.AutoFreePointer(weakref.proxy(self.context), ctypes.c_void_p(address), size,
                                         finalizer=free)
        allocations[address] = pointer  # what is given out counts its users, and refers to it weakly
        return pointer.own()

    def get_memory_info(self) -> Any:
        """What the device could still give out and has; what Cistern keeps for reuse counts as used."""
        free, total = default(self.context.device.id).memory_info()
        return cuda.MemoryInfo(free=free, total=total)

    def get_ipc_handle(self, memory: Any) -> Any:
        raise NotImplementedError("cistern.numba: memory in pages cannot be passed to another process by "
                                  "the driver's handles; copy it")

    def reset(self) -> None:
        """Ends all arrays of the context, and gives what is free back to the device."""
        super().reset()
        default(self.context.device.id).empty_cache()

    @property
    def interface_version(self) -> int:
        return 1


#: What Numba looks for in the module that NUMBA_CUDA_MEMORY_MANAGER names.
_numba_memory_manager = MemoryManager


def enable() -> None:
    """Device memory comes from Cistern where Numba has not begun to use a device: a context keeps the
    manager that it was made with."""
    cuda.set_memory_manager(MemoryManager)
