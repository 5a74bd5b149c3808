"""`enable()`: which way Cistern gets under PyTorch, and what is said where it cannot."""

from __future__ import annotations

import os
import warnings
from typing import Literal, Optional

from . import _native, _plugin

Mode = Literal["auto", "native", "plugin"]

_MODES = ("auto", "native", "plugin")
_enabled: Optional[str] = None


def enabled() -> Optional[str]:
    """"native" or "plugin", after `enable()` has succeeded; else None."""
    return _enabled


def enable(mode: Optional[Mode] = None) -> str:
    """Puts Cistern under PyTorch for the rest of the process; call it before CUDA is initialised.

    "native" is PyTorch's whole allocator interface: an extension that is compiled against the
    installed PyTorch when it is first used (half a minute, then cached). "plugin" is PyTorch's
    interface for foreign allocators, which needs no compiler and lacks statistics, snapshots,
    history and checkpoints. "auto", or None without $CISTERN_TORCH, is native, and plugin with a
    warning where that cannot be compiled or PyTorch is a release that it was not written for.

    Returns what it is now; a second call changes nothing. RuntimeError where PyTorch has no CUDA or
    has initialised it already, or where the mode that was asked for cannot be had; ImportError
    without PyTorch; ValueError for another mode. Nothing is changed then. Not thread-safe.
    """
    global _enabled
    wanted = mode if mode is not None else os.environ.get("CISTERN_TORCH", "auto")
    if wanted not in _MODES:
        raise ValueError(f"cistern.torch: mode {wanted!r} is none of {', '.join(_MODES)}")
    if _enabled is not None:
        return _enabled
    _check_torch()
    _enabled = _choose(wanted)
    return _enabled


def _check_torch() -> None:
    import torch

    if torch.version.cuda is None and os.environ.get("CISTERN_BACKEND") != "sim":
        raise RuntimeError(
            f"cistern.torch: this PyTorch ({torch.__version__}) is built without CUDA"
        )
    if torch.cuda.is_initialized():
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
