"""`MemPool`: Cistern for one region of a program, with PyTorch's own caching on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, SupportsIndex

from .. import _arguments
from . import _plugin
from ._enable import enabled

if TYPE_CHECKING:
    import torch


def MemPool(*, limit: Optional[SupportsIndex] = None, **options: Any) -> "torch.cuda.MemPool":  # noqa: N802: it makes one
    """A torch.cuda.MemPool whose segments Cistern supplies; `options` are torch.cuda.MemPool's own.

        with torch.cuda.use_mem_pool(cistern.torch.MemPool()):
            ...

    Nothing else of the program changes. PyTorch keeps its allocations until the pool is gone and
    emptied; the allocator is kept as long as the pool. A program that has enabled Cistern gets a pool
    of Cistern's. There `limit` bounds the bytes of its blocks on the current device: a request beyond
    it is an OutOfMemoryError that names the pool. ValueError for an `allocator` among the options, and
    for a `limit` unless Cistern is enabled natively.
    """
    import torch

    if "allocator" in options:
        raise ValueError("cistern.torch.MemPool: its allocator is Cistern; use torch.cuda.MemPool")
    if limit is not None and enabled() != "native":
        raise ValueError("cistern.torch.MemPool: a limit needs cistern.torch.enable() in native mode")
    if enabled() is not None:
        pool = torch.cuda.MemPool(**options)
        if limit is not None:
            from ._regions import _limit_pool
            _limit_pool(torch.cuda.current_device(), pool, _arguments.whole(limit, "limit"))
        return pool
    return torch.cuda.MemPool(allocator=_allocator().allocator(), **options)


_kept: Any = None


def _allocator() -> Any:
    """One for the process: a pool's blocks are freed through it, also after the pool's end."""
    global _kept
    if _kept is None:
        _kept = _plugin.allocator()
    return _kept
