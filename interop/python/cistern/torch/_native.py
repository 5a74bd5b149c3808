"""The native way: PyTorch's own allocator is replaced by ours."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import Any, Dict, Optional

from . import _build, _cached, _collectives, _newer, _statistics, _streams

OLDEST, NEWEST = (2, 9), (2, 15)


_library: Optional[ctypes.CDLL] = None


class Usage(ctypes.Structure):
    """The use of a GPU since the process began, whatever statistics were reset since: see device_state.hpp."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in
                ("requested_peak", "reserved_peak", "taken", "returned", "retries", "out_of_memory", "moved", "call_ns")]


class Unavailable(Exception):
    """The reason why the native allocator is not available here."""


def _release() -> tuple[int, int]:
    """Unavailable if the version does not begin with two numbers, as some builds of one's own."""
    import torch

    numbers = re.match(r"([0-9]{1,9})\.([0-9]{1,9})", str(torch.__version__))
    if numbers is None:
        raise Unavailable(f"cannot tell the release of PyTorch from its version {str(torch.__version__)!r}")
    return int(numbers[1]), int(numbers[2])


def _check_newer(extension: Path) -> None:
    oldest, newest = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
    _newer.check(extension, ".".join(map(str, _release())), f"{oldest} to {newest}")


def install() -> None:
    """Compiles the extension if need be, loads it, and makes it PyTorch's allocator. Unavailable if
    that is not possible; RuntimeError if CUDA is initialised already."""
    release = _release()
    if release < OLDEST:
        raise Unavailable(
            "the native allocator is for PyTorch {}.{} and later, and this is {}.{}".format(
                *OLDEST, *release
            )
        )
    newer = release > NEWEST
    try:
        library = _cached.load(_check_newer) if newer else _cached.load()
    except _build.BuildError as failure:
        hint = " (a later release than any that it was written for)" if newer else ""
        raise Unavailable(
            "the native allocator cannot be had for PyTorch {}.{}{}: {}".format(
                *release, hint, failure
            )
        ) from None
    for name in ("install", "trace_begin", "trace_end", "history_begin", "history_end"):
        getattr(library, f"cistern_torch_{name}").restype = ctypes.c_char_p
    refused = library.cistern_torch_install()
    if refused is not None:
        raise RuntimeError(f"cistern.torch: {refused.decode()}")
    register = library.cistern_torch_register_stream
    register.restype, register.argtypes = ctypes.c_char_p, (ctypes.c_int, ctypes.c_void_p)
    _streams.follow(register)
    captures = library.cistern_torch_captures_collectives
    captures.restype, captures.argtypes = ctypes.c_int, (ctypes.c_void_p,)
    _collectives.follow(captures)
    _statistics.follow()
    global _library
    _library = library


def record_begin(folder: "os.PathLike[str]", name: str, history: bool) -> None:
    """Records from now on the allocations on each GPU, N.trace for the GPU N. With `history` these
    have all that `cistern report` draws; else what a replay takes. A failure to write is reported at
    the end."""
    plain = "".join(c for c in name if c.isalnum() or c in "-_.")
    refused = _recorder(history, "begin")(os.fsencode(folder), plain.encode())
    if refused is not None:
        raise RuntimeError(f"{os.fsdecode(folder)}: {refused.decode()}")


def keep_history() -> None:
    """Keeps the newest events of each GPU in memory from now on."""
    _recorder(True, "begin")(None, b"")


def record_end(history: bool) -> Optional[str]:
    """Ends the recording. Returns why the files are not whole, or None."""
    failed: Optional[bytes] = _recorder(history, "end")()
    return None if failed is None else failed.decode()


def _recorder(history: bool, verb: str) -> Any:
    assert _library is not None, "after install()"
    return getattr(_library, f"cistern_torch_{'history' if history else 'trace'}_{verb}")


def set_overflow(host_bytes: int) -> None:
    """Each GPU may have so many bytes of the host's memory once it is full. Before the first tensor."""
    assert _library is not None, "after install()"
    set_to = _library.cistern_torch_set_overflow
    set_to.argtypes, set_to.restype = (ctypes.c_ulonglong,), None
    set_to(host_bytes)


def usage() -> Dict[int, Usage]:
    """That of each GPU that was asked for memory, by its number. A script may have broken PyTorch, so it is not
    asked."""
    assert _library is not None, "after install()"
    found = {}
    for device in range(64):  # as many as the extension knows
        one = Usage()
        if _library.cistern_torch_usage(device, ctypes.byref(one)) and one.requested_peak + one.out_of_memory > 0:
            found[device] = one
    return found
