"""The statistics of an allocator, named as in PyTorch. cistern/statistics.hpp says what each
counts."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from typing import Any, Dict

from ._native import PageCountsStruct, StatisticsStruct, StatGroupStruct, check, lib


@dataclass(frozen=True)
class Stat:
    """One statistic: `current`, its `peak`, and since the accumulated counts were reset all increases
    (`allocated`) and all decreases (`freed`). freed == allocated - current until then."""

    current: int
    peak: int
    allocated: int
    freed: int


@dataclass(frozen=True)
class StatGroup:
    """Counts of blocks and segments, and bytes.

    allocation            blocks that the program holds
    segment               device allocations
    active                blocks held, or freed and still used by queued work
    inactive_split        free blocks of segments that are not wholly free, and that no thread keeps
    allocated_bytes       of blocks held, rounding included
    reserved_bytes        taken from the device
    active_bytes          of the active blocks
    inactive_split_bytes  of the inactive split blocks
    requested_bytes       as the program asked for, of the blocks that it holds
    """

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
class PageCounts:
    """The fates of the pages, counted since the allocator was made. All are 0 if its memory is segments.

    created   made by the device
    recycled  moved: mapped where they were needed, rather than new ones made
    revived   taken back into use where they were still mapped, without a device call
    retired   mappings that moved pages had left behind, removed
    returned  given back to the device
    freezes   times that a heap whose pages found no rest gave up moving them
    """

    created: int
    recycled: int
    revived: int
    retired: int
    returned: int
    freezes: int


@dataclass(frozen=True)
class Statistics:
    """A consistent picture of one moment.

    all                   all requests
    small_pool            requests up to 1 MiB
    large_pool            the others
    num_alloc_retries     requests that had to give memory back before they could go on
    num_ooms              times of OutOfMemoryError, and of its counterparts in other languages
    num_sync_all_streams  times the host waited for queued work
    num_device_alloc      calls that took memory from the device
    num_device_free       calls that gave it back
    num_misuses           wrong frees
    host_bytes            host memory that the bookkeeping uses
    peaks_exact           True: every peak is exact; False: some may be a little off
    pages                 made, moved and given back
    memory_call_ns        the host's time in ns in the calls that make, move and give back pages and segments,
                          since the device was opened; the background thread's calls count, too
    """

    all: StatGroup
    small_pool: StatGroup
    large_pool: StatGroup
    num_alloc_retries: int
    num_ooms: int
    num_sync_all_streams: int
    num_device_alloc: int
    num_device_free: int
    num_misuses: int
    host_bytes: int
    peaks_exact: bool
    pages: PageCounts
    memory_call_ns: int


def _pages(struct: PageCountsStruct) -> PageCounts:
    return PageCounts(*(getattr(struct, field.name) for field in fields(PageCounts)))


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
    values.update(peaks_exact=bool(struct.peaks_exact), pages=_pages(struct.pages))
    return Statistics(**values)
