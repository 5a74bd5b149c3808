"""Memory that is held where it is, for a library that registers it."""

from __future__ import annotations

from typing import Any, Callable

from ._native import lib, made
from ._owned import Owned, Scoped, state


class Hold(Scoped):
    """Made by Allocator.hold and Pool.hold. Until its release, behind each address stays the memory that
    lies there now, whatever is freed and allocated. It ends by release(), at the end of a `with`, or when
    nothing refers to it. While there is one, its allocator cannot be destroyed: InvalidStateError."""

    def __init__(self, allocator: Owned, begin: Callable[..., int], *arguments: Any) -> None:
        handle = made(begin, *arguments)
        self._owned = Owned("a hold", handle, lib.cistern_unhold, handle, parent=allocator)

    def release(self) -> None:
        """Ends it. Does nothing if it has ended already."""
        self._owned.end()

    def __repr__(self) -> str:
        return f"<cistern.Hold{state(self._owned)}>"
