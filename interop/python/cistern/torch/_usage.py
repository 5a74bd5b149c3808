"""How much of each GPU is in use, and what overflow has done there, as the extension sees it."""

from __future__ import annotations

import atexit
import ctypes
from typing import Any, Callable, Dict, Optional

from . import _host_memory


class Figures(ctypes.Structure):
    """The figures of overflow on a device, in bytes: see exports.cpp."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("host_bytes", "reserved", "handed_out")]


_functions: Dict[str, Any] = {}


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """That of the extension. Each step calls these often, so their types are told once."""
    found = _functions.get(name)
    if found is None:
        found = getattr(_host_memory._library(), name)
        found.restype, found.argtypes = result, arguments
        _functions[name] = found
    return found


def figures_of(device: int) -> Optional[Figures]:
    """None for a device that had no tensor yet."""
    figures = Figures()
    call = _function("cistern_torch_overflow", ctypes.c_int, ctypes.c_int, ctypes.POINTER(Figures))
    return figures if call(device, ctypes.byref(figures)) else None


def all_figures() -> Dict[int, Figures]:
    """Those of each device that had a tensor."""
    import torch

    each = ((device, figures_of(device)) for device in range(torch.cuda.device_count()))
    return {device: figures for device, figures in each if figures is not None}


def capacity(device: int) -> int:
    """The bytes that the device has for this process, by its limit too. Asks the driver."""
    return int(_function("cistern_torch_capacity", ctypes.c_ulonglong, ctypes.c_int)(device))


def on_device(device: int) -> int:
    """The bytes of tensors that lie in the device's own memory now."""
    return int(_function("cistern_torch_on_device", ctypes.c_ulonglong, ctypes.c_int)(device))


def take_peak(device: int) -> int:
    """The most bytes of the device that tensors needed at a time since it was asked last. Memory that overflow has
    put on the host counts. Memory that a program puts there does not."""
    return int(_function("cistern_torch_take_peak", ctypes.c_ulonglong, ctypes.c_int)(device))


#: What the extension may call at any time, as long as the process lives.
_kept: Dict[Callable[[int], int], Any] = {}


def when_short(call: Optional[Callable[[int], int]]) -> None:
    """From now on `call` is called with the number of a device that is short of memory, before it overflows or is
    out of it. Returns whether it has freed something. None: nothing is called."""
    of_c = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    if call is not None and call not in _kept:
        _kept[call] = of_c(call)
        atexit.register(when_short, None)  # threads of C++ may go on without Python
    _function("cistern_torch_when_short", None, ctypes.c_void_p)(
        None if call is None else ctypes.cast(_kept[call], ctypes.c_void_p))
