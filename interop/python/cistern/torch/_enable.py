"""`enable()`: the way that Cistern gets under PyTorch, and the message if it cannot."""

from __future__ import annotations

import ctypes
import os
import warnings
from typing import Literal, Optional, Tuple

from .. import _arguments, _overflow
from .._arguments import PathLike, Size
from . import _collectives, _native, _plugin

Mode = Literal["auto", "native", "plugin"]

_MODES = ("auto", "native", "plugin")
_BACKENDS = ("auto", "cuda", "sim")
_enabled: Optional[str] = None
_given: Tuple[Optional[str], Optional[int]] = (None, None)  # the last oom_dump and overflow


def enabled() -> Optional[str]:
    """"native" or "plugin", after `enable()` has succeeded; else None."""
    return _enabled


def library(user: str) -> ctypes.CDLL:
    """The extension, of the native mode. `user` is what needs it, as an error begins. RuntimeError without it."""
    if _enabled != "native" or _native._library is None:
        raise RuntimeError(f"cistern.torch: {user} cistern.torch.enable() in its native mode, before the first CUDA "
                           f"tensor; now it is {_enabled or 'off'}")
    return _native._library


def enable(mode: Optional[Mode] = None, *, oom_dump: Optional[PathLike] = None,
           overflow: Optional[Size] = None) -> str:
    """Puts Cistern under PyTorch for the rest of the process; call it before CUDA is initialised.

    "native" is PyTorch's whole allocator interface. It is an extension: the wheel's own for the
    installed PyTorch, or one that is compiled at its first use (ten seconds or so, then kept).
    "plugin" is PyTorch's interface for foreign allocators, which needs no compiler and lacks
    statistics, snapshots, history and checkpoints. "auto", or None without $CISTERN_TORCH, is
    native. If that cannot be compiled, or PyTorch is older than 2.9, it is plugin, with a warning.
    A PyTorch that is newer than any known one is tested first, once, in a process of its own: if
    the test fails, it is plugin too.

    `oom_dump`: a folder, in which a file is written when a request finds no memory. The error's text
    ends with the command that draws it. For that the newest million events of each device are kept
    in memory, with lines of Python (none in plugin mode), and an allocation takes longer.

    `overflow`: bytes of the host's memory, as an int or as "64GiB", that may serve each device once it is full. It
    is slower there (docs/overflow.md). A device whose driver makes no such memory goes on without, with a
    warning; so does the plug-in.

    Returns the mode that is now in force. A second call changes no mode. It sets an `oom_dump` or `overflow` that
    differs from what was given before. RuntimeError if PyTorch has no CUDA or has initialised it already, or if the
    requested mode is not available. ImportError without PyTorch; TypeError for a mode that is no str; ValueError for
    another mode, for another $CISTERN_BACKEND than cuda, sim or auto, for an `oom_dump` that is no folder, or for an
    `overflow` that is less than a page of 2 MiB or more than the host admits. After an error nothing is changed. Not
    thread-safe.
    """
    global _enabled, _given
    if not isinstance(mode, (str, type(None))):
        raise TypeError(f"cistern.torch: mode must be a str or None, not {type(mode).__name__}")
    wanted = mode if mode is not None else os.environ.get("CISTERN_TORCH") or "auto"
    if wanted not in _MODES:
        named = "mode" if mode is not None else "CISTERN_TORCH, the mode,"
        raise ValueError(f"cistern.torch: {named} {wanted!r} is none of {', '.join(_MODES)}")
    dump = None if oom_dump is None else _folder(oom_dump)
    host_bytes = None if overflow is None else _arguments.size(overflow, "overflow")
    if _enabled is not None and dump in (None, _given[0]) and host_bytes in (None, _given[1]):
        return _enabled
    if host_bytes is not None:
        _require_admitted(host_bytes)
    _check_torch()
    if _enabled is None:
        _enabled = _choose(wanted)
        _collectives.register_nothing()
    if dump is not None:
        _dump_to(dump)
    if host_bytes is not None:
        _overflow_into(host_bytes)
    _given = (dump or _given[0], _given[1] if host_bytes is None else host_bytes)
    return _enabled


def _require_admitted(host_bytes: int) -> None:
    if 0 < host_bytes < 2 << 20:
        raise ValueError(f"cistern.torch: overflow: {host_bytes} bytes are less than a page of 2 MiB")
    left = _overflow.host_bytes_left()
    if host_bytes > left:
        raise ValueError(f"cistern.torch: overflow: {host_bytes / 2**30:.2f} GiB are more than the {left / 2**30:.2f} GiB "
                         "that the host admits")


def _overflow_into(host_bytes: int) -> None:
    if _enabled == "native":
        _native.set_overflow(host_bytes)
    elif host_bytes > 0:
        warnings.warn("cistern.torch: overflow is off: it needs the native mode, and this is the plug-in", stacklevel=3)


def _folder(path: PathLike) -> str:
    folder = os.path.abspath(os.fsdecode(_arguments.path(path, "oom_dump")))
    if not os.path.isdir(folder):
        raise ValueError(f"cistern.torch: oom_dump: {folder} is no folder")
    if any(each in folder for each in ",[]"):
        raise ValueError(f"cistern.torch: oom_dump: {folder} has a comma or a bracket in its name, which an "
                         "option cannot have")
    return folder


def _dump_to(folder: str) -> None:
    """An option of the allocators, which are made later; so children have it, too."""
    options = os.environ.get("CISTERN_CONF", "")
    os.environ["CISTERN_CONF"] = f"{options}{',' if options else ''}oom_dump:{folder}"
    if _enabled == "native":
        _native.keep_history()


def _check_torch() -> None:
    backend = os.environ.get("CISTERN_BACKEND") or "auto"
    if backend not in _BACKENDS:
        raise ValueError(f"cistern.torch: CISTERN_BACKEND is {backend!r}: must be one of {', '.join(_BACKENDS)}")
    import torch

    if torch.version.cuda is None and backend != "sim":
        raise RuntimeError(
            f"cistern.torch: this PyTorch ({torch.__version__}) is built without CUDA"
        )
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        raise RuntimeError(
            "cistern.torch: CUDA is initialised already; call cistern.torch.enable() before the "
            "first CUDA tensor, stream or query of the program"
        )


def _choose(wanted: str) -> str:
    if wanted != "plugin":
        try:
            _native.install()
            return "native"
        except _native.Unavailable as reason:
            if wanted == "native":
                raise RuntimeError(f"cistern.torch: {reason}") from None
            warnings.warn(
                f"cistern.torch: {reason}\nThe plug-in interface is used instead: {_plugin.MISSING}",
                stacklevel=3,
            )
    _plugin.install()
    return "plugin"
