"""The reports of an allocator about itself, and its limits."""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
from typing import (Any, Dict, NamedTuple, Optional, SupportsFloat, SupportsIndex, cast, overload)

from . import _arguments, _overflow, statistics
from ._arguments import PathLike, Size
from ._history import Recorded
from ._native import check, lib, value_of, written


class MemoryInfo(NamedTuple):
    """The bytes that the device could still give out, to any program, and its total bytes."""

    free: int
    total: int


class Observed(Recorded):
    """The part of an Allocator that changes no memory. Its methods raise InvalidHandleError after the
    allocator's destroy(), and InvalidStateError in a child of fork."""

    def stats(self) -> statistics.Statistics:
        """All statistics, as a consistent picture."""
        return statistics.read(self._owned.value)

    def stats_dict(self) -> Dict[str, int]:
        """Every statistic, by PyTorch's names: "allocated_bytes.all.current", …"""
        return cast(Dict[str, int],
                    json.loads(written(lib.cistern_statistics_json, self._owned.value)))

    def reset_peak_stats(self) -> None:
        """Sets every peak to its current value."""
        check(lib.cistern_reset_peak_statistics(self._owned.value))

    @overload
    def snapshot(self) -> Dict[str, Any]: ...
    @overload
    def snapshot(self, path: PathLike) -> None: ...

    def snapshot(self, path: Optional[PathLike] = None) -> Optional[Dict[str, Any]]:
        """Every segment and block, as docs/c-api.md describes them. With a path, they
        are written to a JSON file, which is replaced as a whole or not at all (FileError). Without
        a path, they are returned."""
        if path is not None:
            check(lib.cistern_snapshot(self._owned.value, _arguments.path(path, "path")))
            return None
        with tempfile.TemporaryDirectory(prefix="cistern-") as folder:
            file = os.path.join(folder, "snapshot.json")
            self.snapshot(file)
            with open(file, encoding="utf-8") as content:
                return cast(Dict[str, Any], json.load(content))

    @property
    def options(self) -> str:
        """The options that differ from their defaults, as a conf that makes the same ones."""
        return written(lib.cistern_options, self._owned.value)

    @property
    def backend(self) -> str:
        """The backend whose device it allocates on: "cuda", "hip" or "sim". For "auto" it is the
        choice made."""
        return written(lib.cistern_backend, self._owned.value)

    @property
    def limit(self) -> int:
        """The most bytes that may be reserved. Memory that is already reserved beyond it stays
        until it is freed."""
        return int(value_of(ctypes.c_uint64, lib.cistern_limit, self._owned.value))

    @limit.setter
    def limit(self, size: SupportsIndex) -> None:
        check(lib.cistern_set_limit(self._owned.value, _arguments.whole(size, "limit")))

    def set_memory_fraction(self, fraction: SupportsFloat) -> None:
        """Sets the limit as a fraction of the device, 0 < fraction <= 1. InvalidArgumentError for
        another one."""
        check(lib.cistern_set_memory_fraction(self._owned.value, _arguments.real(fraction, "fraction")))

    def set_overflow(self, size: Size) -> None:
        """From now on `size` bytes of the host's memory, an int or a text such as "64GiB", may serve requests when
        the device has no room. The default is 0: none. It is slower there (docs/overflow.md). Blocks that lie
        there stay until they are freed. InvalidArgumentError for less than a page of 2 MiB, or if the host
        admits less, with how much, or if the device has no pages of host memory."""
        _overflow.set_to(self._owned.value, size)

    def overflow(self) -> _overflow.Overflow:
        """The blocks that lie in the host's memory because the device was full."""
        return _overflow.read(self._owned.value)

    def take_peak(self) -> int:
        """The most bytes of the device that blocks needed at a time since it was called last, or ever: what a step
        needs. Blocks that lie in the host's memory by overflow count, and so does rounding. One reader alone gets
        each peak: under PyTorch, that is host_activations()."""
        return int(value_of(ctypes.c_uint64, lib.cistern_take_peak, self._owned.value))

    def memory_info(self) -> MemoryInfo:
        """The free and the total memory of the device."""
        free, total = ctypes.c_uint64(), ctypes.c_uint64()
        check(lib.cistern_memory_info(self._owned.value, ctypes.byref(free), ctypes.byref(total)))
        return MemoryInfo(free.value, total.value)
