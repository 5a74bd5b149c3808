"""Captured graphs that call NCCL.

NCCL may register the memory that captured collectives use: each rank opens the others' pages, and keeps
them by their addresses until some call after the graph's end. By then other pages may lie there, as
they move, or as a region has slept. A replay would then read and write the old ones, and a new capture
may wait for ever. NCCL reads NCCL_GRAPH_REGISTER at the first such capture of a process. So enable()
sets it to 0, unless the program has set it; and no region sleeps once NCCL may have registered something.
"""

from __future__ import annotations

import os
from typing import Any, Callable

_VARIABLE = "NCCL_GRAPH_REGISTER"
_registered = False

#: Takes a stream's handle: 0 if the graph that it is being captured into does not call NCCL.
Captures = Callable[[int], int]


def follow(captures: Captures) -> None:
    """Looks from now on into each graph whose capture ends in a process that has process groups."""
    import torch

    graph: Any = torch.cuda.CUDAGraph
    ends = graph.capture_end

    def capture_end(self: Any) -> None:
        global _registered
        distributed = torch.distributed
        grouped = distributed.is_available() and distributed.is_initialized()
        if grouped and not _registered and os.environ.get(_VARIABLE) != "0":
            _registered = captures(torch.cuda.current_stream().cuda_stream) != 0
        ends(self)

    graph.capture_end = capture_end


def register_nothing() -> None:
    """NCCL registers nothing for captured graphs, unless the program wants it to."""
    os.environ.setdefault(_VARIABLE, "0")


def refusal() -> "str | None":
    """The reason why no region may sleep; None if there is none."""
    if not _registered:
        return None
    return (f"a captured graph has called NCCL, which may have registered the memory with the other ranks: "
            f"start the process with {_VARIABLE}=0, or leave it to enable()")
