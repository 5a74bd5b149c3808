"""Cistern, a caching memory allocator for GPUs.

    import cistern

    with cistern.Allocator("sim") as allocator:
        block = allocator.allocate(64 << 20)
        allocator.free(block)
        print(allocator.stats().all.reserved_bytes.peak)

docs/python.md has more. Everything here may be called from any thread.
"""

from ._arguments import Conf, StreamLike
from ._distributions import warn_of_others as _warn_of_others  # before _native: _distributions.check() looks for it
from ._native import lib as _lib, text_of as _text_of
from ._observed import MemoryInfo
from .allocator import Allocator, default
from .buffer import Buffer
from .capture import Capture
from .errors import (CisternError, DeviceError, FileError, HostOutOfMemoryError, InternalError,
                     InvalidArgumentError, InvalidHandleError, InvalidOptionError,
                     InvalidPointerError, InvalidStateError, NoDeviceError, NotSupportedError,
                     OutOfMemoryError, Status)
from .pinned import Pinned, PinnedBuffer, PinnedStatistics
from .pool import Pool, PoolId
from .replay import Replay, ReplayError, replay, replay_all
from .statistics import Stat, StatGroup, Statistics
from .stream import Stream

_warn_of_others()

#: The library's, which is the C header's.
__version__: str = _text_of(_lib.cistern_version_string())

__all__ = [
    "Allocator", "Buffer", "Capture", "CisternError", "Conf", "DeviceError", "FileError",
    "HostOutOfMemoryError", "InternalError", "InvalidArgumentError", "InvalidHandleError",
    "InvalidOptionError", "InvalidPointerError", "InvalidStateError", "MemoryInfo", "NoDeviceError",
    "NotSupportedError", "OutOfMemoryError", "Pinned", "PinnedBuffer", "PinnedStatistics", "Pool",
    "PoolId", "Replay", "ReplayError", "Stat", "StatGroup", "Statistics", "Status", "Stream",
    "StreamLike", "default", "replay", "replay_all",
]
