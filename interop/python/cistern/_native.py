"""The C API (include/cistern/cistern.h) by ctypes: the library, its structs, and check().

A call lets other threads of Python run. A program that links libcistern.so.0 itself shares this one:
the loader knows it by its name.
"""

from __future__ import annotations

import ctypes
from ctypes import (POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t,
                    c_uint64, c_void_p)
from pathlib import Path
from typing import Any, Callable, Dict, Sequence

from . import _places
from .errors import error_of


class SimConfig(Structure):
    _fields_ = [("size", c_size_t), ("capacity", c_uint64), ("granularity", c_uint64),
                ("gpu_lag_ns", c_uint64), ("ordinal", c_int32), ("no_virtual_memory", c_int32)]


class PoolIdStruct(Structure):
    _fields_ = [("uuid", c_uint64), ("uid", c_uint64)]


class PoolOptions(Structure):
    _fields_ = [("size", c_size_t), ("use_on_oom", c_int32), ("no_split", c_int32), ("location", c_int32),
                ("one_handle", c_int32)]


class SleepReportStruct(Structure):
    _fields_ = [("size", c_size_t), *((name, c_uint64) for name in (
        "released", "stayed", "saved", "pinned_anew"))]


class WakeReportStruct(Structure):
    _fields_ = [("size", c_size_t), *((name, c_uint64) for name in (
        "mapped", "restored", "pinned", "resident"))]


class StatStruct(Structure):
    _fields_ = [(name, c_int64) for name in ("current", "peak", "allocated", "freed")]


class StatGroupStruct(Structure):
    _fields_ = [(name, StatStruct) for name in (
        "allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
        "active_bytes", "inactive_split_bytes", "requested_bytes")]


class PageCountsStruct(Structure):
    _fields_ = [(name, c_uint64) for name in (
        "created", "recycled", "revived", "retired", "returned", "freezes")]


class StatisticsStruct(Structure):
    _fields_ = [("size", c_size_t), ("all", StatGroupStruct), ("small_pool", StatGroupStruct),
                ("large_pool", StatGroupStruct), *((name, c_uint64) for name in (
                    "num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
                    "num_device_free", "num_misuses", "host_bytes", "peaks_exact")),
                ("pages", PageCountsStruct), ("memory_call_ns", c_uint64)]


class OverflowStruct(Structure):
    _fields_ = [("size", c_size_t), *((name, c_uint64) for name in (
        "host_bytes", "reserved", "most_reserved", "handed_out", "would_do"))]


class PinnedStatisticsStruct(Structure):
    _fields_ = [("size", c_size_t), *((name, StatStruct) for name in (
        "allocation", "segment", "active", "requested_bytes", "allocated_bytes", "active_bytes",
        "reserved_bytes")), *((name, c_uint64) for name in (
            "num_host_alloc", "num_host_free", "num_alloc_retries", "num_ooms", "num_waits",
            "num_misuses", "host_bytes"))]


class StackGathererStruct(Structure):
    _fields_ = [("size", c_size_t), *((name, c_void_p) for name in ("data", "gather", "frame_of", "release"))]


class HistorySettings(Structure):
    _fields_ = [("size", c_size_t), ("file", c_char_p), ("most_events", c_uint64), ("stacks", c_int32),
                ("name", c_char_p), ("gatherer", POINTER(StackGathererStruct))]


class MemoryNoticeStruct(Structure):
    _fields_ = [("number", c_uint64), ("address", c_void_p), ("bytes", c_uint64), ("stream", c_void_p),
                ("pool_uuid", c_uint64), ("pool_uid", c_uint64),
                *((name, c_int32) for name in ("unmapping", "on_host", "in_pages", "imported", "was_there"))]


MemoryHookFunction = ctypes.CFUNCTYPE(None, c_void_p, POINTER(MemoryNoticeStruct))

_HANDLE = c_void_p  # a handle, a stream, or an address of device memory
_OUT = POINTER(c_void_p)
_ARGUMENTS: Dict[str, Sequence[Any]] = {
    "allocator_create": (c_char_p, c_int, c_char_p, _OUT),
    "allocator_create_sim": (POINTER(SimConfig), c_char_p, _OUT),
    "allocator_destroy": (_HANDLE,),
    "default_allocator": (c_int, _OUT),
    "allocate": (_HANDLE, c_size_t, _HANDLE, _OUT),
    "allocate_aligned": (_HANDLE, c_size_t, c_size_t, _HANDLE, _OUT),
    "free": (_HANDLE, _HANDLE),
    "record_stream": (_HANDLE, _HANDLE, _HANDLE),
    "register_stream": (_HANDLE, _HANDLE),
    "forget_stream": (_HANDLE, _HANDLE),
    "empty_cache": (_HANDLE,),
    "hold": (_HANDLE, _HANDLE, c_size_t, _OUT),
    "unhold": (_HANDLE,),
    "memory_hook_attach": (_HANDLE, MemoryHookFunction, c_void_p, _OUT),
    "memory_hook_detach": (_HANDLE,),
    "block_size": (_HANDLE, _HANDLE, POINTER(c_size_t)),
    "location_of": (_HANDLE, _HANDLE, POINTER(c_int)),
    "host_bytes_in": (_HANDLE, _HANDLE, POINTER(c_uint64)),
    "base_allocation": (_HANDLE, _HANDLE, _OUT, POINTER(c_size_t)),
    "stream_create": (_HANDLE, _OUT),
    "stream_destroy": (_HANDLE, _HANDLE),
    "stream_synchronize": (_HANDLE, _HANDLE),
    "stream_begin_capture": (_HANDLE, _HANDLE),
    "stream_end_capture": (_HANDLE, _HANDLE),
    "pool_create": (_HANDLE, POINTER(PoolOptions), _OUT),
    "pool_destroy": (_HANDLE,),
    "pool_id": (_HANDLE, POINTER(PoolIdStruct)),
    "pool_use_count": (_HANDLE, POINTER(c_int)),
    "pool_allocate": (_HANDLE, c_size_t, _HANDLE, _OUT),
    "pool_allocate_aligned": (_HANDLE, c_size_t, c_size_t, _HANDLE, _OUT),
    "pool_empty_cache": (_HANDLE,),
    "pool_set_limit": (_HANDLE, c_uint64),
    "pool_hold": (_HANDLE, _OUT),
    "pool_scope_begin": (_HANDLE,),
    "pool_scope_end": (_HANDLE,),
    "pool_stream_scope_begin": (_HANDLE, _HANDLE),
    "pool_stream_scope_end": (_HANDLE, _HANDLE),
    "capture_begin": (_HANDLE, _HANDLE, _HANDLE, _OUT),
    "capture_include_stream": (_HANDLE, _HANDLE),
    "capture_end": (_HANDLE,),
    "capture_launching": (_HANDLE, _HANDLE),
    "capture_launched": (_HANDLE,),
    "capture_idle": (_HANDLE, POINTER(c_int)),
    "pools_sleep": (_OUT, c_size_t, _OUT, c_int, POINTER(SleepReportStruct)),
    "pools_wake": (_OUT, c_size_t, c_int, POINTER(WakeReportStruct)),
    "pool_is_asleep": (_HANDLE, POINTER(c_int)),
    "pool_set_contents": (_HANDLE, _HANDLE, c_int),
    "pool_copy_saved": (_HANDLE, _HANDLE, _HANDLE, c_size_t, POINTER(c_int)),
    "capture_pool_id": (_HANDLE, POINTER(PoolIdStruct)),
    "capture_release": (_HANDLE,),
    "statistics": (_HANDLE, POINTER(StatisticsStruct)),
    "reset_peak_statistics": (_HANDLE,),
    "statistics_json": (_HANDLE, c_char_p, POINTER(c_size_t)),
    "options": (_HANDLE, c_char_p, POINTER(c_size_t)),
    "backend": (_HANDLE, c_char_p, POINTER(c_size_t)),
    "set_limit": (_HANDLE, c_uint64),
    "limit": (_HANDLE, POINTER(c_uint64)),
    "set_memory_fraction": (_HANDLE, c_double),
    "memory_info": (_HANDLE, POINTER(c_uint64), POINTER(c_uint64)),
    "set_overflow": (_HANDLE, c_uint64),
    "overflow": (_HANDLE, POINTER(OverflowStruct)),
    "overflow_text": (_HANDLE, c_char_p, POINTER(c_size_t)),
    "host_bytes_left": (POINTER(c_uint64),),
    "take_peak": (_HANDLE, POINTER(c_uint64)),
    "snapshot": (_HANDLE, c_char_p),
    "python_stacks": (POINTER(StackGathererStruct),),
    "record_history": (_HANDLE, POINTER(HistorySettings)),
    "stop_history": (_HANDLE,),
    "dump_history": (_HANDLE, c_char_p),
    "mark": (_HANDLE, c_char_p),
    "label_usage": (_HANDLE, c_char_p, POINTER(c_size_t)),
    "push_label": (c_char_p,),
    "pop_label": (),
    "pinned_allocate": (_HANDLE, c_size_t, _OUT),
    "pinned_free": (_HANDLE, _HANDLE),
    "pinned_record_stream": (_HANDLE, _HANDLE, _HANDLE),
    "pinned_empty_cache": (_HANDLE,),
    "pinned_block_size": (_HANDLE, _HANDLE, POINTER(c_size_t)),
    "pinned_set_limit": (_HANDLE, c_uint64),
    "pinned_limit": (_HANDLE, POINTER(c_uint64)),
    "pinned_statistics": (_HANDLE, POINTER(PinnedStatisticsStruct)),
    "pinned_reset_peak_statistics": (_HANDLE,),
}


def _load(path: Path) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
        for name, arguments in _ARGUMENTS.items():
            getattr(library, "cistern_" + name).argtypes = arguments
        for name in ("last_error", "version_string"):
            getattr(library, "cistern_" + name).restype = c_char_p
    except (OSError, AttributeError) as error:
        raise ImportError(f"cistern: {path} cannot be used: {error}") from error
    return library


lib = _load(_places.library())


def text_of(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def check(status: int) -> None:
    """Raises the error of a failed call. To be called next after it, by the same thread."""
    if status != 0:
        raise error_of(status, text_of(lib.cistern_last_error()))


def made(call: Callable[..., int], *arguments: Any) -> int:
    """The handle, stream or address that a call writes through its last argument; 0 for null."""
    out = c_void_p()
    check(call(*arguments, byref(out)))
    return out.value or 0


def written(call: Callable[..., int], handle: int) -> str:
    """The text that a call writes to a buffer."""
    while True:
        length = c_size_t()
        check(call(handle, None, byref(length)))
        # It may have grown by the time that it is written.
        buffer = ctypes.create_string_buffer(length.value + 64)
        length.value = len(buffer)
        status = call(handle, buffer, byref(length))
        if status != 12:  # CISTERN_BUFFER_TOO_SMALL
            check(status)
            return text_of(buffer.value)
