"""The statistics of an allocator, named as in PyTorch. cistern/statistics.hpp says what each
counts."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from typing import Any, Dict

from ._native import StatisticsStruct, StatGroupStruct, check, lib


@dataclass(frozen=True)
class Stat:
    """One statistic. freed == allocated - current, until the accumulated counts are reset."""

    current: int
    peak: int
    #: All increases since they were reset.
    allocated: int
    #: All decreases since then.
    freed: int


@dataclass(frozen=True)
class StatGroup:
    """Counts of blocks and segments, and bytes."""

    allocation: Stat
    segment: Stat
    active: Stat
    inactive_split: Stat
    allocated_bytes: Stat
    reserved_bytes: Stat
    active_bytes: Stat
    inactive_split_bytes: Stat
    requested_bytes: Stat


@dataclass(frozen=True)
class Statistics:
    """A consistent picture of one moment."""

    all: StatGroup
    #: Requests up to 1 MiB.
    small_pool: StatGroup
    large_pool: StatGroup
    #: Requests that had to give memory back before they could go on.
    num_alloc_retries: int
    #: OutOfMemoryError, and its counterparts in other languages.
    num_ooms: int
    #: Times the host waited for queued work.
    num_sync_all_streams: int
    num_device_alloc: int
    num_device_free: int
    #: Wrong frees.
    num_misuses: int
    #: Host memory that the bookkeeping uses.
    host_bytes: int
    #: True: every peak is exact; False: some may be a little off.
    peaks_exact: bool


def _group(struct: StatGroupStruct) -> StatGroup:
    def stat(name: str) -> Stat:
        one = getattr(struct, name)
        return Stat(one.current, one.peak, one.allocated, one.freed)

    return StatGroup(*(stat(field.name) for field in fields(StatGroup)))


def read(handle: int) -> Statistics:
    """The statistics of an allocator. Fields that only a later library knows are left out; fields
    that an earlier one does not know are 0."""
    struct = StatisticsStruct(size=ctypes.sizeof(StatisticsStruct))
    check(lib.cistern_statistics(handle, ctypes.byref(struct)))
    values: Dict[str, Any] = {field.name: getattr(struct, field.name) for field in fields(Statistics)}
    values.update({name: _group(values[name]) for name in ("all", "small_pool", "large_pool")})
    values["peaks_exact"] = bool(struct.peaks_exact)
    return Statistics(**values)
