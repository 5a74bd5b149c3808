"""MemPools of our own, whose memory is other than that of the program's MemPools."""

from __future__ import annotations

import ctypes
import enum
from typing import Any


class PoolMemory(enum.IntEnum):
    """What a pool consists of: interop/torch/torch_pools.hpp."""

    SEGMENTS = 0
    PAGES = 1
    HOST = 2


def mem_pool(library: ctypes.CDLL, memory: PoolMemory) -> Any:
    """A torch.cuda.MemPool on the device that is current."""
    import torch

    library.cistern_torch_pools_ahead(int(memory))
    try:
        return torch.cuda.MemPool()
    finally:
        library.cistern_torch_pools_ahead(int(PoolMemory.SEGMENTS))
