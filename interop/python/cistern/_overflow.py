"""Memory of the host for what the device has no room for. docs/overflow.md says what it costs.

    allocator.set_overflow("64GiB")
    print(allocator.overflow().text)
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from . import _arguments
from ._arguments import Size

# The library is loaded by the functions: `python -m cistern info` tells what is there without it, and
# imports cistern.torch for that.


class Overflow(NamedTuple):
    """The memory of the host that serves a device which was full, in bytes."""

    host_bytes: int  #: the most that may lie there; 0: overflow is off
    reserved: int  #: pages of host memory, with what lies free in them
    most_reserved: int  #: the most of them at one time
    handed_out: int  #: of all blocks that were made there so far
    would_do: int  #: about the limit of the device with which nothing would have come to lie there; 0: nothing did
    text: str  #: the figures and the largest blocks, in lines for a person


def read(handle: int) -> Overflow:
    """The figures of the allocator with that handle."""
    from ._native import OverflowStruct, check, lib, written

    struct = OverflowStruct(size=ctypes.sizeof(OverflowStruct))
    check(lib.cistern_overflow(handle, ctypes.byref(struct)))
    return Overflow(struct.host_bytes, struct.reserved, struct.most_reserved, struct.handed_out, struct.would_do,
                    written(lib.cistern_overflow_text, handle))


def set_to(handle: int, size: Size) -> None:
    """Sets what may lie there. InvalidArgumentError with what the host admits."""
    from ._native import check, lib

    check(lib.cistern_set_overflow(handle, _arguments.size(size, "size")))


def host_bytes_left() -> int:
    """The bytes of the host's memory that pages may take now."""
    from ._native import lib, value_of

    return int(value_of(ctypes.c_uint64, lib.cistern_host_bytes_left))
