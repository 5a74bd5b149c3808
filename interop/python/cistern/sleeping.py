"""Sleep: the memory of pools goes back to the device for a while, at the same addresses.

    report = cistern.sleep(weights, cache)      # Pools
    ...                                         # others use the device
    cistern.wake(weights, cache)
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple, Optional, Protocol, Tuple

from . import _arguments
from ._arguments import StreamLike
from ._contents import Contents
from ._native import SleepReportStruct, WakeReportStruct, check, lib
from ._owned import Owned


class SleepReport(NamedTuple):
    """The outcome of a sleep, in bytes."""

    released: int  #: given back to the device
    stayed: int  #: what others have, the device kept, or lies in the host's memory
    saved: int  #: copied to the host
    pinned_anew: int  #: host memory that this sleep had to pin


class WakeReport(NamedTuple):
    """The outcome of a wake, in bytes."""

    mapped: int  #: taken from the device
    restored: int  #: copied from the host
    pinned: int  #: host memory that is kept for the next sleep
    resident: int  #: host memory of the process afterwards


class Sleeper(Protocol):
    """A Pool, as far as sleep needs to know it."""

    _owned: Owned


def _handles(pools: Tuple[Sleeper, ...]) -> ctypes.Array[ctypes.c_void_p]:
    if not pools:
        raise TypeError("at least one pool is needed")
    for pool in pools:
        if not hasattr(pool, "_owned"):
            raise TypeError(f"a pool is needed, not {type(pool).__name__}")
    return (ctypes.c_void_p * len(pools))(*(pool._owned.value for pool in pools))


def sleep(*pools: Sleeper, contents: Contents = Contents.SAVE,
          after: Optional[StreamLike] = None) -> SleepReport:
    """The pools, all of one allocator, give their memory to the device. Their blocks keep their addresses,
    and may be freed; nothing may use them, and nothing is allocated there, before wake(). `contents`: the
    fate of their bytes, but for what Pool.set_contents() says.

    Without `after`, it waits for all work of the device. With it, it waits for that stream, and for those that
    own, recorded or replayed the memory: every other use is to be queued before. All pools fall asleep,
    or none. InvalidStateError, HostOutOfMemoryError if the host has too little memory to save into."""
    report = SleepReportStruct(size=ctypes.sizeof(SleepReportStruct))
    on = None if after is None else ctypes.byref(ctypes.c_void_p(_arguments.stream(after)))
    check(lib.cistern_pools_sleep(_handles(pools), len(pools), on, Contents(contents),
                                  ctypes.byref(report)))
    return SleepReport(report.released, report.stayed, report.saved, report.pinned_anew)


def wake(*pools: Sleeper, keep_host_memory: bool = True) -> WakeReport:
    """The pools have their memory again, with the bytes of their blocks, at the same addresses. All of
    them wake, or none: OutOfMemoryError says who holds the memory. `keep_host_memory`: what was pinned
    stays so for the next sleep, which is faster then."""
    report = WakeReportStruct(size=ctypes.sizeof(WakeReportStruct))
    check(lib.cistern_pools_wake(_handles(pools), len(pools),
                                 _arguments.flag(keep_host_memory, "keep_host_memory"),
                                 ctypes.byref(report)))
    return WakeReport(report.mapped, report.restored, report.pinned, report.resident)
