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

import ctypes
import functools
import os
import weakref
from typing import Any, Callable, Optional, TypeVar

from . import _sites
from ._native import SimConfig, check, lib, made, text_of
from .errors import (CisternError, InvalidHandleError, InvalidPointerError, InvalidStateError,
                     error_of)

_Self = TypeVar("_Self", bound="Scoped")
_blocks: weakref.WeakValueDictionary[_sites.Key, Owned] = weakref.WeakValueDictionary()
_forks = 0  # how many forks lie between the first process and this one


def _after_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)


class Owned:
    """Ends with `end(*arguments)`, a call of the C API. `parent` is what it must not outlive."""

    def __init__(self, what: str, value: int, end: Callable[..., int], *arguments: Any,
                 parent: Optional[Owned] = None) -> None:
        self._what = what
        self._value = value
        self._born = _forks
        self._end = end
        self._arguments = arguments
        self._parent = parent
        self.gone: bool = False  # the library no longer has it
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
            raise InvalidPointerError(f"{self._what} at {self._value:#x} was freed by its address{self._freed_by()}")
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

    def _freed_by(self) -> str:
        return ""

    def lose(self) -> None:
        """Its block was freed by its address: from now on that address belongs to others."""
        if self._finalizer.detach() is not None:
            self._lost = self.gone = True


class OwnedBlock(Owned):
    """A block that can be found by its address, and is freed with `free(allocator, address)`."""

    def __init__(self, what: str, free: Callable[..., int], allocator: Owned, address: int) -> None:
        self._key: _sites.Key = (free.__name__, allocator.value, address)
        super().__init__(what, address, _free, free, allocator.value, address, parent=allocator)
        if address != 0:
            handed_out(free, allocator.value, address)
            _blocks[self._key] = self

    def check_block(self, status: int) -> None:
        """check() after a call about the block."""
        check_block(status, *self._key)

    def _freed_by(self) -> str:
        site = _sites.freed(self._key)
        return "" if site is None else f" by {_sites.text(site)}"


def _free(free: Callable[..., int], allocator: int, address: int) -> int:
    """Frees a block, and notes which line of Python does. Returns 0, or raises the error."""
    key = (free.__name__, allocator, address)
    before = _sites.note(key, 2)
    status = free(allocator, address)
    if status != 0:
        raise _failed(status, key, before)
    return 0


def _failed(status: int, key: _sites.Key, before: Optional[_sites.Site]) -> CisternError:
    """The error of a free that failed. The library's text is taken first: what this does may end other
    objects, which call the library."""
    error = error_of(status, text_of(lib.cistern_last_error()))
    _sites.unnote(key, before)
    return _told(error, key)


def _told(error: CisternError, key: _sites.Key) -> CisternError:
    if not isinstance(error, InvalidPointerError):
        return error
    return InvalidPointerError(_sites.told(str(error), key, _code_of_ctypes))


def check_block(status: int, free_name: str, allocator: int, address: int) -> None:
    """check() after a call about a block. `free_name`: the name of the call that frees it. An
    InvalidPointerError names the line of Python that freed the block."""
    if status != 0:
        error = error_of(status, text_of(lib.cistern_last_error()))
        raise _told(error, (free_name, allocator, address))


@functools.lru_cache(maxsize=None)
def _code_of_ctypes() -> Optional[str]:
    """The library's name for the code that frees for Python. That is ctypes' code, which the library knows by
    an address. A free that is wrong on purpose tells."""
    try:
        config = SimConfig(size=ctypes.sizeof(SimConfig))
        allocator = made(lib.cistern_allocator_create_sim, ctypes.byref(config), b"")
    except CisternError:
        return None
    try:
        block = made(lib.cistern_allocate, allocator, 1, None)
        lib.cistern_free(allocator, block)
        check(lib.cistern_free(allocator, block))
    except CisternError as error:
        found = _sites.FREED_BY.search(str(error))
        return None if found is None else found["code"]
    finally:
        lib.cistern_allocator_destroy(allocator)
    return None


def owner(allocator: Owned, what: str, maker: str) -> Owned:
    """The allocator of an object that only its method `maker` makes. TypeError for anything else."""
    if not isinstance(allocator, Owned):
        raise TypeError(f"{what} is made by {maker}(), not by its class")
    return allocator


def handed_out(free: Callable[..., int], allocator: int, address: int) -> int:
    """A new block has the address. An object that had the address before has lost its block."""
    before = _blocks.pop((free.__name__, allocator, address), None)
    if before is not None:
        before.lose()
    return address


def free_address(free: Callable[..., int], allocator: int, address: int) -> None:
    """Frees a block, which may belong to an object. The object is taken out of the table first:
    once the address is free, another block may have it."""
    key = (free.__name__, allocator, address)
    block = _blocks.pop(key, None)
    before = _sites.note(key, 2)
    status = free(allocator, address)
    if status != 0:
        error = _failed(status, key, before)
        if block is not None:
            _blocks.setdefault(key, block)
        raise error
    if block is not None:
        block.lose()


def _collected(end: Callable[..., int], arguments: Any, born: int, parent: Optional[Owned]) -> None:
    if born != _forks or (parent is not None and parent.gone):
        return
    try:
        end(*arguments)
    except InvalidPointerError:  # nobody else would hear of it
        raise
    except CisternError:
        pass


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
