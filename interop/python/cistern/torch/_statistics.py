"""Cistern's own counts in `torch.cuda.memory_stats()`."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict

from . import _host_memory


def follow() -> None:
    """From now on `torch.cuda.memory_stats()` has these keys too, counted since the allocator was made whatever
    statistics are reset:

    cistern.pages.…         as in cistern.PageCounts: created, recycled, revived, retired, returned, freezes
    cistern.memory_call_ns  as in cistern.Statistics
    """
    import torch

    theirs: Any = torch.cuda.memory_stats_as_nested_dict

    def memory_stats_as_nested_dict(device: Any = None) -> Dict[str, Any]:
        stats: Dict[str, Any] = theirs(device=device)
        if stats:  # there are none before CUDA is initialised
            stats["cistern"] = _counts(_host_memory._index(device))
        return stats

    for module in (torch.cuda, torch.cuda.memory):
        setattr(module, "memory_stats_as_nested_dict", memory_stats_as_nested_dict)


def _counts(device: int) -> Dict[str, Any]:
    from .. import allocator  # loads the library, which may be missing where this module is imported

    stats = allocator.default(device).stats()
    return {"pages": dataclasses.asdict(stats.pages), "memory_call_ns": stats.memory_call_ns}
