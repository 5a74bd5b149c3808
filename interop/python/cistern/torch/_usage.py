"""How much of each GPU is in use, and what overflow has done there, as the extension sees it."""

from __future__ import annotations

import atexit
import ctypes
from typing import Any, Callable, Dict, Optional

from . import _host_memory


class Figures(ctypes.Structure):
    """What overflow has done on a device, in bytes: see torch_host_memory.cpp."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("host_bytes", "reserved", "handed_out")]


def figures_of(device: int) -> Optional[Figures]:
    """None for a device that had no tensor yet."""
    call = _host_memory._library().cistern_torch_overflow
    call.restype, call.argtypes = ctypes.c_int, (ctypes.c_int, ctypes.POINTER(Figures))
    figures = Figures()
    return figures if call(device, ctypes.byref(figures)) else None


def all_figures() -> Dict[int, Figures]:
    """Those of each device that had a tensor."""
    import torch

    each = ((device, figures_of(device)) for device in range(torch.cuda.device_count()))
    return {device: figures for device, figures in each if figures is not None}


def capacity(device: int) -> int:
    """The bytes that the device has for this process, by its limit too. Asks the driver."""
    call = _host_memory._library().cistern_torch_capacity
    call.restype, call.argtypes = ctypes.c_ulonglong, (ctypes.c_int,)
    return int(call(device))


def on_device(device: int) -> int:
    """The bytes of tensors that lie in the device's own memory now."""
    call = _host_memory._library().cistern_torch_on_device
    call.restype, call.argtypes = ctypes.c_ulonglong, (ctypes.c_int,)
    return int(call(device))


#: What the extension may call at any time, as long as the process lives.
_kept: Dict[Callable[[int], int], Any] = {}


def when_short(call: Optional[Callable[[int], int]]) -> None:
    """From now on `call` is called with the number of a device that is short of memory, before it overflows or is
    out of it. Returns whether it has freed something. None: nothing is called."""
    of_c = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    if call is not None and call not in _kept:
        _kept[call] = of_c(call)
        atexit.register(when_short, None)  # threads of C++ may go on without Python
    set_to = _host_memory._library().cistern_torch_when_short
    set_to.restype, set_to.argtypes = None, (ctypes.c_void_p,)
    set_to(None if call is None else ctypes.cast(_kept[call], ctypes.c_void_p))
