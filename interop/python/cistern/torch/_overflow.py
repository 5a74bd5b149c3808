"""The host's memory that serves a GPU which was full."""

from __future__ import annotations

from typing import Any

from .._overflow import Overflow
from . import _host_memory


def overflow(device: Any = None) -> Overflow:
    """The host's memory that serves `device`, or the current one, once that was full. RuntimeError before
    cistern.torch.enable() in its native mode."""
    _host_memory._library()
    from ..allocator import default

    return default(_host_memory._index(device)).overflow()
