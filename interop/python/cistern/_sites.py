"""The lines of Python that freed blocks, for the text of errors.

The library remembers the code that freed a block, and for a call from Python that is ctypes. This
table remembers the line. Both keep the last frees only. A line is kept as an instruction of a code
object, and becomes text when an error needs it: a free is to cost little.
"""

from __future__ import annotations

import dis
import os
import re
import sys
import weakref
from types import CodeType, FrameType
from typing import Callable, Dict, Optional, Tuple

#: The name of the call that frees the block, its allocator, and its address.
Key = Tuple[str, int, int]
Site = Tuple[CodeType, int]  # a code object, and the offset of an instruction in it

#: This package, and Python's own finalizers.
_BETWEEN = (os.path.dirname(os.path.abspath(__file__)) + os.sep, weakref.__file__)
_MOST = 4096
#: The last _MOST blocks at most, and up to _MOST before them.
_freed: Dict[Key, Site] = {}
_former: Dict[Key, Site] = {}
#: The end of the library's text about a block that is free.
FREED_BY = re.compile(r", freed by (?P<code>.*) on thread \d+$")
_FORGOTTEN = ", freed longer ago than is remembered"


def text(site: Site) -> str:
    code, instruction = site
    line = code.co_firstlineno
    for start, starts in dis.findlinestarts(code):
        if start > instruction:
            break
        line = starts or line
    return f"{code.co_filename}:{line} ({code.co_name})"


def note(key: Key, depth: int) -> Optional[Site]:
    """Notes the line that frees the block, before it does: once the block is free, another thread may
    have it, and free it. The line is the program's innermost on this thread. In a finalizer it is the
    line that ended the last reference, or where garbage was collected. `depth`: how many frames
    above are the package's for sure. Returns what was noted before, for unnote()."""
    global _freed, _former
    before = _freed.get(key)
    frame: Optional[FrameType] = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
    if frame is not None:
        if len(_freed) >= _MOST:
            _former, _freed = _freed, {}
        _freed[key] = frame.f_code, frame.f_lasti
    return before


def unnote(key: Key, before: Optional[Site]) -> None:
    """The block was not freed after all."""
    if before is None:
        _freed.pop(key, None)
    else:
        _freed[key] = before


def freed(key: Key) -> Optional[Site]:
    """The line that freed the block last, if that is remembered."""
    return _freed.get(key) or _former.get(key)


def told(said: str, key: Key, code_of_ctypes: Callable[[], Optional[str]]) -> str:
    """The library's text about a wrong pointer, with the line of Python that freed the block in place of
    ctypes. A free by other code stays as it is."""
    site = freed(key)
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
