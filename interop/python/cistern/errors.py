"""The exceptions: one for each status of the C API.

All are CisternError. Each is also the class that Python programs catch for such an error
(MemoryError, ValueError, …). The text is the library's own.
"""

from __future__ import annotations

import enum
from typing import Dict, Type


class Status(enum.IntEnum):
    """cistern_status_t. A later library may return others: they are CisternError."""

    OK = 0
    OUT_OF_MEMORY = 1
    HOST_OUT_OF_MEMORY = 2
    INVALID_ARGUMENT = 3
    INVALID_HANDLE = 4
    INVALID_POINTER = 5
    INVALID_STATE = 6
    INVALID_OPTION = 7
    DEVICE_ERROR = 8
    NO_DEVICE = 9
    NOT_SUPPORTED = 10
    IO_ERROR = 11
    BUFFER_TOO_SMALL = 12
    INTERNAL = 13


class CisternError(Exception):
    """The base of all exceptions that Cistern raises, except TypeError."""

    #: The status of this exception. It is an int that is no Status if a later library has more.
    status: int = Status.INTERNAL


class OutOfMemoryError(CisternError, MemoryError):
    """The device has no room. The text says who holds the memory, and what would have made it
    fit."""

    status: int = Status.OUT_OF_MEMORY


class HostOutOfMemoryError(CisternError, MemoryError):
    """There is no host memory for the bookkeeping."""

    status: int = Status.HOST_OUT_OF_MEMORY


class InvalidArgumentError(CisternError, ValueError):
    """The call does not accept the value."""

    status: int = Status.INVALID_ARGUMENT


class InvalidHandleError(CisternError, ValueError):
    """The allocator, pool or capture has been destroyed."""

    status: int = Status.INVALID_HANDLE


class InvalidPointerError(CisternError, ValueError):
    """The address is not that of an allocated block: it is freed already, foreign, or inside a
    block."""

    status: int = Status.INVALID_POINTER


class InvalidStateError(CisternError, RuntimeError):
    """An allocator, pool, scope or capture that is not in the state for the call."""

    status: int = Status.INVALID_STATE


class InvalidOptionError(CisternError, ValueError):
    """Options that cannot be read."""

    status: int = Status.INVALID_OPTION


class DeviceError(CisternError, RuntimeError):
    """The device or its driver failed."""

    status: int = Status.DEVICE_ERROR


class NoDeviceError(DeviceError):
    """There is no driver, or no such device."""

    status: int = Status.NO_DEVICE


class NotSupportedError(CisternError, RuntimeError):
    """This device, or this build, cannot do it."""

    status: int = Status.NOT_SUPPORTED


class FileError(CisternError, OSError):
    """A file could not be written: the text names it, and why."""

    status: int = Status.IO_ERROR


class InternalError(CisternError, RuntimeError):
    """A fault of Cistern's, or of a hook of C++ code."""

    status: int = Status.INTERNAL


_BY_STATUS: Dict[int, Type[CisternError]] = {
    int(kind.status): kind
    for kind in (OutOfMemoryError, HostOutOfMemoryError, InvalidArgumentError, InvalidHandleError,
                 InvalidPointerError, InvalidStateError, InvalidOptionError, DeviceError,
                 NoDeviceError, NotSupportedError, FileError, InternalError)
}


def error_of(status: int, text: str) -> CisternError:
    """The exception for a status that is not OK."""
    error = _BY_STATUS.get(status, CisternError)(text)
    error.status = status if status not in _BY_STATUS else error.status
    return error
