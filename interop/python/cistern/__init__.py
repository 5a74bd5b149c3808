"""Cistern, a caching memory allocator for GPUs.

    import cistern

    with cistern.Allocator("sim") as allocator:    # or "cuda", "hip"
        block = allocator.allocate(64 << 20)       # an address
        allocator.free(block)                      # reusable at once
        with allocator.buffer(1 << 20) as buffer:  # which frees itself
            print(buffer.address, buffer.size)
        print(allocator.stats().all.reserved_bytes.peak)

Memory     Allocator (of one device), default() (the process's shared one),
           Buffer, Pool (memory kept apart), Hold (memory that stays where
           it is), MemoryHook (hears of memory before it goes), Pinned and
           PinnedBuffer (host memory for copies); sleep() and wake() of
           pools
Work       Stream; Capture (the memory of a graph)
Figures    Statistics, PinnedStatistics, MemoryInfo, Overflow;
           Allocator.snapshot()
Recorded   replay(), replay_all(): how much would a program take, and under
           which allocator? report(): a page that says who held the memory,
           and why a request did not fit. label() names what is allocated
           inside it, mark() a moment
Others     cistern.torch (PyTorch), cistern.cupy, cistern.numba: import the
           one that is needed
Errors     CisternError is the base of all. OutOfMemoryError is also a
           MemoryError, InvalidArgumentError a ValueError. A wrong type is a
           TypeError.
Arguments  Conf: options, as "limit:1GiB,recycle:off" or as a mapping,
           {"limit": 1 << 30, "recycle": "off"}.
           StreamLike: None (the default stream), an int, a Stream, or a
           stream of PyTorch, CuPy or whatever has __cuda_stream__().
           Sizes are in bytes. Addresses are ints.

Everything here may be called from any thread. `python -m cistern info` says
what is installed. docs/python.md of the repository has more.
"""

from ._arguments import Conf, StreamLike
from ._distributions import warn_of_others as _warn_of_others  # first: check() looks for it

try:
    from ._native import lib as _lib, text_of as _text_of
except ImportError as _why:
    from . import _unusable

    _unusable.end_program(_why)
    raise
from ._contents import Contents
from ._history import LabelUsage, mark
from ._location import Location
from ._observed import MemoryInfo
from ._overflow import Overflow
from .allocator import Allocator, default
from .buffer import Buffer
from .capture import Capture
from .errors import (CisternError, DeviceError, FileError, HostOutOfMemoryError, InternalError,
                     InvalidArgumentError, InvalidHandleError, InvalidOptionError,
                     InvalidPointerError, InvalidStateError, NoDeviceError, NotSupportedError,
                     OutOfMemoryError, Status)
from .label import label
from .pinned import Pinned, PinnedBuffer, PinnedStatistics
from .hold import Hold
from .memory_hook import MemoryChange, MemoryHook, MemoryNotice
from .pool import Pool, PoolId
from .replay import Replay, ReplayError, replay, replay_all
from .report import ReportError, report
from .sleeping import SleepReport, WakeReport, sleep, wake
from .statistics import PageCounts, Stat, StatGroup, Statistics
from .stream import Stream

_warn_of_others()

#: The library's, which is the C header's.
__version__: str = _text_of(_lib.cistern_version_string())

__all__ = [
    "Allocator", "Buffer", "Capture", "CisternError", "Conf", "Contents", "DeviceError", "FileError", "Hold",
    "HostOutOfMemoryError", "InternalError", "InvalidArgumentError", "InvalidHandleError", "InvalidOptionError",
    "InvalidPointerError", "InvalidStateError", "LabelUsage", "Location", "MemoryChange", "MemoryHook",
    "MemoryInfo", "MemoryNotice", "NoDeviceError", "NotSupportedError", "OutOfMemoryError", "Overflow",
    "PageCounts", "Pinned", "PinnedBuffer", "PinnedStatistics", "Pool", "PoolId", "Replay", "ReplayError",
    "ReportError", "SleepReport", "Stat", "StatGroup", "Statistics", "Status", "Stream", "StreamLike",
    "WakeReport", "default", "label", "mark", "replay", "replay_all", "report", "sleep", "wake",
]
