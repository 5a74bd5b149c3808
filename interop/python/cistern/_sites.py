"""The lines of Python that freed blocks, for the text of errors.

The library remembers the code that freed a block, and for a call from Python that is ctypes. This
table remembers the line. Both keep the last frees only. A line is kept as a code object and a
number, and becomes text when an error needs it.
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections import OrderedDict
from types import CodeType, FrameType
from typing import Callable, Optional, Tuple

#: The name of the call that frees the block, its allocator, and its address.
Key = Tuple[str, int, int]
Site = Tuple[CodeType, int]

#: This package, and Python's own finalizers.
_BETWEEN = (os.path.dirname(os.path.abspath(__file__)) + os.sep, weakref.__file__)
_MOST = 4096
_freed: OrderedDict[Key, Site] = OrderedDict()
#: The end of the library's text about a block that is free.
FREED_BY = re.compile(r", freed by (?P<code>.*) on thread \d+$")
_FORGOTTEN = ", freed longer ago than is remembered (option free_log)"


def here() -> Optional[Site]:
    """The innermost line of the program's that runs on this thread. In a finalizer it is the line that
    ended the last reference, or where garbage was collected."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lineno)


def text(site: Site) -> str:
    code, line = site
    return f"{code.co_filename}:{line} ({code.co_name})"


def note(key: Key) -> Optional[Site]:
    """Notes that this line frees the block, before it does: once the block is free, another thread may
    have it, and free it. Returns what was noted before, for unnote()."""
    before = _freed.pop(key, None)
    site = here()
    if site is not None:
        _freed[key] = site
        if len(_freed) > _MOST:
            _freed.popitem(last=False)
    return before


def unnote(key: Key, before: Optional[Site]) -> None:
    """The block was not freed after all."""
    _freed.pop(key, None)
    if before is not None:
        _freed[key] = before


def freed(key: Key) -> Optional[Site]:
    """The line that freed the block last, if that is remembered."""
    return _freed.get(key)


def told(said: str, key: Key, code_of_ctypes: Callable[[], Optional[str]]) -> str:
    """The library's text about a wrong pointer, with the line of Python that freed the block in place of
    ctypes. A free by other code stays as it is."""
    site = _freed.get(key)
    if site is None:
        return said
    found = FREED_BY.search(said)
    if found is not None:
        if found["code"] != code_of_ctypes():
            return said
        return f"{said[:found.start('code')]}{text(site)}{said[found.end('code'):]}"
    if said.endswith(_FORGOTTEN):
        said = said[:-len(_FORGOTTEN)]
    elif not said.endswith(", free"):  # it is allocated, or was never this allocator's
        return said
    return f"{said}, freed last from Python by {text(site)}"
