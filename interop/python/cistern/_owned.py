"""The part of the library that a Python object owns, and when that ends.

    Allocator  <-  Stream, Pool, Capture, Buffer

Each object has an Owned. The program ends it (destroy, free), or it ends when nothing refers to it
any more. An Owned that belongs to another keeps that one alive. This also holds while Python
collects cycles in any order, because the arguments of a finalizer are not garbage. At the exit of
the interpreter nothing is ended. Threads may still be in a call then, and the end of the process
gives everything back.

In a child of fork, an object from before the fork belongs to the parent. Its use raises
InvalidStateError, and its end does nothing.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Callable, Optional, Tuple, TypeVar

from ._native import check
from .errors import (CisternError, InvalidHandleError, InvalidPointerError,
                     InvalidStateError)

_Self = TypeVar("_Self", bound="Scoped")
_Key = Tuple[str, int, int]  # the name of what frees a block, its allocator, and its address
_blocks: weakref.WeakValueDictionary[_Key, Owned] = weakref.WeakValueDictionary()
_forks = 0  # how many forks lie between the first process and this one


def _after_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)


class Owned:
    """Ends with `end(*arguments)`, a call of the C API. `parent` is what it must not outlive."""

    def __init__(self, what: str, value: int, end: Callable[..., int], *arguments: int,
                 parent: Optional[Owned] = None) -> None:
        self._what = what
        self._value = value
        self._born = _forks
        self._end = end
        self._arguments = arguments
        self._parent = parent
        self.gone = False  # the library no longer has it
        self._lost = False  # its block was freed by its address, and nobody has ended it since
        self._arm()

    def _arm(self) -> None:
        finalizer: Any = weakref.finalize(self, _collected, self._end, self._arguments, self._born,
                                          self._parent)
        finalizer.atexit = False
        self._finalizer = finalizer

    @property
    def forked(self) -> bool:
        return self._born != _forks

    @property
    def alive(self) -> bool:
        """Whether it has not been ended, and is not from before a fork."""
        return not self.gone and not self.forked

    @property
    def raw(self) -> int:
        """The handle, to be shown."""
        return self._value

    @property
    def value(self) -> int:
        """The handle, for a call. The library finds out whether it was destroyed."""
        if self._born != _forks:
            raise InvalidStateError(f"{self._what} from before a fork cannot be used in the child")
        return self._value

    def present(self, noun: str) -> int:
        """The value, where the library does not look it up: another object may have it by now."""
        if self.gone:
            raise InvalidHandleError(f"{self._what} that is gone has no {noun}")
        if self._parent is not None and self._parent.gone:
            raise InvalidHandleError(f"{self._what} of {self._parent._what} that is gone has no {noun}")
        return self.value

    def __reduce__(self) -> str:
        raise TypeError(f"{self._what} can neither be copied nor pickled")

    def end(self) -> None:
        """Does nothing if it has ended already, or is from before a fork."""
        if self._lost:
            self._lost = False
            raise InvalidPointerError(f"{self._what} at {self._value:#x} was freed by its address")
        if self.forked or self._finalizer.detach() is None:  # of several threads one detaches it
            return
        try:
            check(self._end(*self._arguments))
        except InvalidHandleError:
            pass  # the object that it belongs to is gone
        except InvalidPointerError:
            self.gone = True  # freed by its address: by the next time that may be another's
            raise
        except CisternError:
            self._arm()
            raise
        self.gone = True


    def lose(self) -> None:
        """Its block was freed by its address: from now on that address belongs to others."""
        if self._finalizer.detach() is not None:
            self._lost = self.gone = True


class OwnedBlock(Owned):
    """A block that can be found by its address, and is freed with `free(allocator, address)`."""

    def __init__(self, what: str, free: Callable[..., int], allocator: Owned, address: int) -> None:
        super().__init__(what, address, free, allocator.value, address, parent=allocator)
        if address != 0:
            handed_out(free, allocator.value, address)
            _blocks[free.__name__, allocator.value, address] = self


def handed_out(free: Callable[..., int], allocator: int, address: int) -> int:
    """A new block has the address. An object that had the address before has lost its block."""
    before = _blocks.pop((free.__name__, allocator, address), None)
    if before is not None:
        before.lose()
    return address


def free_address(free: Callable[..., int], allocator: int, address: int) -> None:
    """Frees a block, which may belong to an object. The object is taken out of the table first:
    once the address is free, another block may have it."""
    block = _blocks.pop((free.__name__, allocator, address), None)
    try:
        check(free(allocator, address))
    except CisternError:
        if block is not None:
            _blocks.setdefault((free.__name__, allocator, address), block)
        raise
    if block is not None:
        block.lose()


def _collected(end: Callable[..., int], arguments: Any, born: int, parent: Optional[Owned]) -> None:
    if born == _forks and (parent is None or not parent.gone):
        end(*arguments)


class Scoped:
    """An object that ends at the end of a `with`."""

    _owned: Owned

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._owned.end()

    def __reduce__(self) -> str:
        return self._owned.__reduce__()


class Open:
    """A context manager whose value is `what`. It is open from `begin(*arguments)` to
    `end(*arguments)`. If the end fails, as it does on another thread, it stays open, and can be
    ended again."""

    def __init__(self, what: Any, begin: Callable[..., int], end: Callable[..., int],
                 *arguments: int) -> None:
        self._what = what
        self._begin = begin
        self._end = end
        self._arguments = arguments

    def __enter__(self) -> Any:
        check(self._begin(self._what._owned.value, *self._arguments))
        return self._what

    def __exit__(self, *error: object) -> None:
        owned = self._what._owned
        if not owned.forked:  # there is nothing to end in the child
            check(self._end(owned.value, *self._arguments))


def state(owned: Owned) -> str:
    """For a repr: "" while it can be used."""
    return "" if owned.alive else ", from before a fork" if owned.forked else ", destroyed"
