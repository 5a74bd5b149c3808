"""Replays of graphs whose region sleeps. PyTorch tells an allocator nothing of a replay, so Python does."""

from __future__ import annotations

import functools
from typing import Any, Callable, Tuple

PoolId = Tuple[int, int]

#: Takes a pool's id: the name of the region that it is, if that sleeps; else None.
Sleeping = Callable[[PoolId], "str | None"]


@functools.lru_cache(maxsize=None)
def follow(sleeping: Sleeping) -> None:
    """From now on torch.cuda.CUDAGraph.replay is a RuntimeError for a graph that was captured into a region
    that sleeps. A graph that only reads a region's tensors is not known."""
    import torch

    graph: Any = torch.cuda.CUDAGraph
    replays = graph.replay

    def replay(self: Any) -> None:
        name = sleeping(self.pool())
        if name is not None:
            raise RuntimeError(f"cistern.torch: replay: the graph's region {name!r} is asleep: wake it first")
        replays(self)

    graph.replay = replay
