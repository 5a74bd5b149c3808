"""The labels of each thread. `label.py` and `torch/_label_modules.py` begin and end them."""

from __future__ import annotations

import threading
from typing import List, Optional, Sequence, Tuple

from ._native import check, lib

#: A label: its name as the C API takes it.
Path = Tuple[bytes, ...]


class _Thread(threading.local):
    """The labels that Python has begun on this thread, the outermost first, and for each the id() of the
    object that ends it (0: none)."""

    def __init__(self) -> None:
        self.names: List[bytes] = []
        self.owners: List[int] = []


_thread = _Thread()


def push(name: bytes, owner: int = 0) -> None:
    """Begins a label."""
    check(lib.cistern_push_label(name))
    _thread.names.append(name)
    _thread.owners.append(owner)


def pop_to(depth: int) -> None:
    """Ends the labels beyond that many."""
    names, owners = _thread.names, _thread.owners
    while len(names) > depth:
        names.pop()
        owners.pop()
        check(lib.cistern_pop_label())


def depth_of(owner: int) -> Optional[int]:
    """How many labels are around the innermost one of that object; None if the thread has none of it.
    Labels inside may have been left behind by an exception."""
    owners = _thread.owners
    for depth in range(len(owners) - 1, -1, -1):
        if owners[depth] == owner:
            return depth
    return None


def path() -> Path:
    """The thread's labels, the outermost first."""
    return tuple(_thread.names)


def depth() -> int:
    return len(_thread.names)


def push_path(names: Sequence[bytes]) -> None:
    """Begins these labels. If the thread's own are the first of them, the others alone."""
    own = _thread.names
    common = len(own) if list(names[:len(own)]) == own else 0
    for name in names[common:]:
        push(name)
