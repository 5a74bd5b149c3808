"""Hooks that hear of memory before it goes, for programs that register memory with other libraries."""

from __future__ import annotations

import atexit
import ctypes
import enum
import itertools
from typing import Any, Callable, Dict, NamedTuple, Set, Tuple

from ._location import Location
from ._native import MemoryHookFunction, lib, made
from ._owned import Owned, Scoped, state


class MemoryChange(enum.Enum):
    """The change that a hook hears of."""

    MAPPED = "mapped"  #: the addresses have memory behind them now
    UNMAPPING = "unmapping"  #: they are about to lose it; nothing can be allocated there any more


class MemoryNotice(NamedTuple):
    """A change to one range of addresses: a page, a segment, or pages of another process. The range that is
    unmapping is one that was mapped, as a whole."""

    number: int  #: of those that this hook is called with: 1, 2, 3, …
    change: MemoryChange
    address: int
    size: int  #: bytes
    stream: int  #: whose blocks were to lie there, as it was mapped
    pool: Tuple[int, int]  #: the same: the uuid and uid of a pool; (0, 0): none
    location: Location  #: of the memory
    in_pages: bool  #: a page; else a segment, or another process' memory
    imported: bool  #: another process has the memory, too
    was_there: bool  #: it is no news: the memory was there when this hook was attached


class MemoryHook(Scoped):
    """Made by Allocator.attach_memory_hook. The hook stays attached until detach(), the end of a `with`, or
    the exit of the interpreter, also when nothing refers to this. Until then its allocator cannot be
    destroyed: InvalidStateError."""

    def __init__(self, allocator: Owned, hook: Callable[[MemoryNotice], Any]) -> None:
        if not callable(hook):
            raise TypeError(f"a function of a MemoryNotice is needed, not {type(hook).__name__}")
        self._key = next(_keys)
        _functions[self._key] = hook
        try:
            handle = made(lib.cistern_memory_hook_attach, allocator.value, _call, self._key)
        except BaseException:
            del _functions[self._key]
            raise
        self._owned = Owned("a hook", handle, lib.cistern_memory_hook_detach, handle, parent=allocator)
        _attached.add(self)

    def detach(self) -> None:
        """The hook is not called any more. Waits for other threads that are in it. Does nothing if it was
        detached already."""
        self._owned.end()
        _attached.discard(self)
        _functions.pop(self._key, None)

    def __exit__(self, *error: object) -> None:
        self.detach()

    def __repr__(self) -> str:
        return f"<cistern.MemoryHook{state(self._owned)}>"


_keys = itertools.count(1)
_functions: Dict[int, Callable[[MemoryNotice], Any]] = {}
_attached: Set[MemoryHook] = set()


def _tell(key: int, notice: Any) -> None:
    _functions[key](_notice(notice.contents))


#: What the library calls for every hook. It is never freed, because a hook may detach itself.
_call = MemoryHookFunction(_tell)


@atexit.register
def _detach_all() -> None:
    """Threads of the library go on when the interpreter no longer runs."""
    for hook in list(_attached):
        hook.detach()


def _notice(of: Any) -> MemoryNotice:
    return MemoryNotice(of.number, MemoryChange.UNMAPPING if of.unmapping else MemoryChange.MAPPED, of.address or 0,
                        of.bytes, of.stream or 0, (of.pool_uuid, of.pool_uid),
                        Location.HOST if of.on_host else Location.DEVICE, bool(of.in_pages), bool(of.imported),
                        bool(of.was_there))
