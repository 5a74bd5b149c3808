"""`MemPool`: Cistern for one region of a program, with PyTorch's own caching on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _plugin
from ._enable import enabled

if TYPE_CHECKING:
    import torch


def MemPool(**options: Any) -> "torch.cuda.MemPool":  # noqa: N802: it makes one
    """A torch.cuda.MemPool whose segments Cistern supplies; `options` are torch.cuda.MemPool's own.

        with torch.cuda.use_mem_pool(cistern.torch.MemPool()):
            ...

    Nothing else of the program changes. PyTorch keeps its allocations until the pool is gone and
    emptied; the allocator is kept as long as the pool. A program that has enabled Cistern gets a pool
    of Cistern's. ValueError for an `allocator` among the options.
    """
    import torch

    if "allocator" in options:
        raise ValueError("cistern.torch.MemPool: its allocator is Cistern; use torch.cuda.MemPool")
    if enabled() is not None:
        return torch.cuda.MemPool(**options)
    return torch.cuda.MemPool(allocator=_allocator().allocator(), **options)


_kept: Any = None


def _allocator() -> Any:
    """One for the process: a pool's blocks are freed through it, also after the pool's end."""
    global _kept
    if _kept is None:
        _kept = _plugin.allocator()
    return _kept
