"""The C API (include/cistern/cistern.h) by ctypes: the library, its structs, and check().

A call lets other threads of Python run. A program that links libcistern.so.0 itself shares this one:
the loader knows it by its name.
"""

from __future__ import annotations

import ctypes
from ctypes import (POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t,
                    c_uint64, c_void_p)
from pathlib import Path
from typing import Any, Callable, Sequence, Tuple

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
#: The calls by what they take. No mapping: some types of ctypes are the same one.
_CALLS: Sequence[Tuple[Sequence[Any], str]] = (
    ((c_char_p, c_int, c_char_p, _OUT), "allocator_create"),
    ((POINTER(SimConfig), c_char_p, _OUT), "allocator_create_sim"),
    ((_HANDLE,),
        "allocator_destroy empty_cache unhold memory_hook_detach pool_destroy pool_empty_cache pool_scope_begin "
        "pool_scope_end capture_end capture_launched capture_release reset_peak_statistics stop_history pinned_empty_cache "
        "pinned_reset_peak_statistics"),
    ((c_int, _OUT), "default_allocator"),
    ((_HANDLE, c_size_t, _HANDLE, _OUT), "allocate pool_allocate"),
    ((_HANDLE, c_size_t, c_size_t, _HANDLE, _OUT), "allocate_aligned pool_allocate_aligned"),
    ((_HANDLE, _HANDLE),
        "free register_stream forget_stream stream_destroy stream_synchronize stream_begin_capture "
        "stream_end_capture pool_stream_scope_begin pool_stream_scope_end capture_include_stream capture_launching "
        "pinned_free"),
    ((_HANDLE, _HANDLE, _HANDLE), "record_stream pinned_record_stream"),
    ((_HANDLE, _HANDLE, c_size_t, _OUT), "hold"),
    ((_HANDLE, MemoryHookFunction, c_void_p, _OUT), "memory_hook_attach"),
    ((_HANDLE, _HANDLE, POINTER(c_size_t)), "block_size pinned_block_size"),
    ((_HANDLE, _HANDLE, POINTER(c_int)), "location_of"),
    ((_HANDLE, _HANDLE, POINTER(c_uint64)), "host_bytes_in"),
    ((_HANDLE, _HANDLE, _OUT, POINTER(c_size_t)), "base_allocation"),
    ((_HANDLE, _OUT), "stream_create pool_hold"),
    ((_HANDLE, POINTER(PoolOptions), _OUT), "pool_create"),
    ((_HANDLE, POINTER(PoolIdStruct)), "pool_id capture_pool_id"),
    ((_HANDLE, POINTER(c_int)), "pool_use_count capture_idle pool_is_asleep"),
    ((_HANDLE, c_uint64), "pool_set_limit set_limit set_overflow pinned_set_limit"),
    ((_HANDLE, _HANDLE, _HANDLE, _OUT), "capture_begin"),
    ((_OUT, c_size_t, _OUT, c_int, POINTER(SleepReportStruct)), "pools_sleep"),
    ((_OUT, c_size_t, c_int, POINTER(WakeReportStruct)), "pools_wake"),
    ((_HANDLE, _HANDLE, c_int), "pool_set_contents"),
    ((_HANDLE, _HANDLE, _HANDLE, c_size_t, POINTER(c_int)), "pool_copy_saved"),
    ((_HANDLE, POINTER(StatisticsStruct)), "statistics"),
    ((_HANDLE, c_char_p, POINTER(c_size_t)), "statistics_json options backend overflow_text label_usage"),
    ((_HANDLE, POINTER(c_uint64)), "limit take_peak pinned_limit"),
    ((_HANDLE, c_double), "set_memory_fraction"),
    ((_HANDLE, POINTER(c_uint64), POINTER(c_uint64)), "memory_info"),
    ((_HANDLE, POINTER(OverflowStruct)), "overflow"),
    ((POINTER(c_uint64),), "host_bytes_left"),
    ((_HANDLE, c_char_p), "snapshot dump_history mark"),
    ((POINTER(StackGathererStruct),), "python_stacks"),
    ((_HANDLE, POINTER(HistorySettings)), "record_history"),
    ((c_char_p,), "push_label"),
    ((), "pop_label"),
    ((_HANDLE, c_size_t, _OUT), "pinned_allocate"),
    ((_HANDLE, POINTER(PinnedStatisticsStruct)), "pinned_statistics"),
)
_ARGUMENTS = {name: arguments for arguments, names in _CALLS for name in names.split()}


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


def value_of(kind: Any, call: Callable[..., int], *arguments: Any) -> Any:
    """The value of that ctypes' kind that a call writes through its last argument."""
    out = kind()
    check(call(*arguments, byref(out)))
    return out.value


def made(call: Callable[..., int], *arguments: Any) -> int:
    """The handle, stream or address that a call writes through its last argument; 0 for null."""
    return int(value_of(c_void_p, call, *arguments) or 0)


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
