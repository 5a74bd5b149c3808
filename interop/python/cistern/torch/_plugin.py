"""The plug-in interface of PyTorch: functions of the shared library, found by their names."""

from __future__ import annotations

import ctypes
from typing import Any

from .. import _places
from . import _streams

MISSING = (
    "without torch.cuda.memory_stats and its like, memory snapshots and history, the checkpoints that "
    'torch.compile(mode="reduce-overhead") needs, CUDA IPC, and cudnn.benchmark = True.'
)

_SETTERS = (
    ("set_init_fn", "cistern_torch_plugin_init"),
    ("set_reset_fn", "cistern_torch_plugin_reset"),
    ("set_memory_fraction_fn", "cistern_torch_plugin_set_memory_fraction"),
    ("set_base_alloc_fn", "cistern_torch_plugin_base_allocation"),
    ("set_record_stream_fn", "cistern_torch_plugin_record_stream"),
    ("set_begin_allocate_to_pool", "cistern_torch_plugin_begin_allocate_to_pool"),
    ("set_end_allocate_to_pool_fn", "cistern_torch_plugin_end_allocate_to_pool"),
    ("set_release_pool", "cistern_torch_plugin_release_pool"),
)


def allocator() -> Any:
    """A torch.cuda.memory.CUDAPluggableAllocator over Cistern, with the calls that PyTorch lets it
    receive."""
    import torch

    path = str(_places.library())
    plugin: Any = torch.cuda.memory.CUDAPluggableAllocator(
        path, "cistern_torch_plugin_malloc", "cistern_torch_plugin_free"
    )
    inner = plugin.allocator()
    library = ctypes.CDLL(path)
    for setter, symbol in _SETTERS:
        if hasattr(inner, setter):
            address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
            getattr(inner, setter)(address)
    return plugin


def install() -> None:
    import torch

    torch.cuda.memory.change_current_allocator(allocator())
    register = ctypes.CDLL(str(_places.library())).cistern_torch_plugin_register_stream
    register.restype, register.argtypes = ctypes.c_char_p, (ctypes.c_int, ctypes.c_void_p)
    _streams.follow(register)
