"""What a Python object owns of the library, and when it ends.

    Allocator  <-  Stream, Pool, Capture, Buffer

Each object has an Owned, which is ended by the program (destroy, free), or when nothing refers to it any
more. One that belongs to another keeps that one: also while Python collects cycles, where the order
would be any, as what a finalizer is given is not garbage. At the exit of the interpreter nothing is
ended: the end of the process gives all of it back, and threads may still be in a call.

In a child of fork what is from before is the parent's: its use raises InvalidStateError, its end does
nothing.
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
        self.gone = False  # the library has it no more
        self._lost = False  # its block was freed by its address, and nobody has asked it to end since
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
        """Whether it has not been ended, and is not of before a fork."""
        return not self.gone and not self.forked

    @property
    def raw(self) -> int:
        """The handle, to be shown."""
        return self._value

    @property
    def value(self) -> int:
        """The handle, for a call. What was destroyed is found out by the library."""
        if self._born != _forks:
            raise InvalidStateError(f"{self._what} from before a fork cannot be used in the child")
        return self._value

    def present(self, noun: str) -> int:
        """The value, for what the library does not look up: somebody else may have it by now."""
        if self.gone:
            raise InvalidHandleError(f"{self._what} that is gone has no {noun}")
        if self._parent is not None and self._parent.gone:
            raise InvalidHandleError(f"{self._what} of {self._parent._what} that is gone has no {noun}")
        return self.value

    def __reduce__(self) -> str:
        raise TypeError(f"{self._what} can neither be copied nor pickled")

    def end(self) -> None:
        """Nothing where it has ended already, or is of before a fork."""
        if self._lost:
            self._lost = False
            raise InvalidPointerError(f"{self._what} at {self._value:#x} was freed by its address")
        if self.forked or self._finalizer.detach() is None:  # of several threads one detaches it
            return
        try:
            check(self._end(*self._arguments))
        except InvalidHandleError:
            pass  # what it is of is gone
        except InvalidPointerError:
            self.gone = True  # freed by its address: by the next time that may be another's
            raise
        except CisternError:
            self._arm()
            raise
        self.gone = True


    def lose(self) -> None:
        """Its block was freed by its address: whatever lies there from now on is another's."""
        if self._finalizer.detach() is not None:
            self._lost = self.gone = True


class OwnedBlock(Owned):
    """A block, freed with `free(allocator, address)`, that is found by its address."""

    def __init__(self, what: str, free: Callable[..., int], allocator: Owned, address: int) -> None:
        super().__init__(what, address, free, allocator.value, address, parent=allocator)
        if address != 0:
            handed_out(free, allocator.value, address)
            _blocks[free.__name__, allocator.value, address] = self


def handed_out(free: Callable[..., int], allocator: int, address: int) -> int:
    """The address is a new block's. What object there was has lost its own."""
    before = _blocks.pop((free.__name__, allocator, address), None)
    if before is not None:
        before.lose()
    return address


def free_address(free: Callable[..., int], allocator: int, address: int) -> None:
    """Frees a block, which may be an object's. That is taken out first: the address may be another's as
    soon as it is free."""
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
    """What ends at the end of a `with`."""

    _owned: Owned

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._owned.end()

    def __reduce__(self) -> str:
        return self._owned.__reduce__()


class Open:
    """What is open from `begin(*arguments)` to `end(*arguments)`, as a context manager whose value is
    `what`. Where the end fails, as on another thread, it is as open as before, and can be ended again."""

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
