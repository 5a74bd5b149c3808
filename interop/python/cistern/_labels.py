"""The labels of each thread. `label.py` and `torch/_label_modules.py` begin and end them."""

from __future__ import annotations

import ctypes
import threading
from typing import List, Optional, Tuple

from ._native import check, lib

# These calls are short and wait for nothing: other threads of Python need not run meanwhile.
_calls = ctypes.PyDLL(lib._name, handle=lib._handle)
_push, _pop = _calls.cistern_push_label, _calls.cistern_pop_label
_push.argtypes, _pop.argtypes = (ctypes.c_char_p,), ()

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
    status = _push(name)
    if status != 0:
        check(status)
    _thread.names.append(name)
    _thread.owners.append(owner)


def pop_to(depth: int) -> None:
    """Ends the labels beyond that many."""
    names, owners = _thread.names, _thread.owners
    while len(names) > depth:
        names.pop()
        owners.pop()
        _pop()


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


def replace(before: int, names: Path) -> None:
    """Puts these labels in place of those beyond that many. If those before are the first of these, they
    are not begun again."""
    own = _thread.names
    wanted = names if names[:before] == tuple(own[:before]) else (*own[:before], *names)
    common = before
    while common < len(own) and common < len(wanted) and own[common] == wanted[common]:
        common += 1
    pop_to(common)
    for name in wanted[common:]:
        push(name)
