"""Labels: names for what a thread allocates, as `cistern report` and PyTorch's snapshots show them."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Optional, Type

from . import _arguments, _labels


class label(contextlib.ContextDecorator):  # noqa: N801: it is used like a function
    """Names what the calling thread allocates, on every allocator, until the block is left:

        with cistern.label("decode"):
            ...

    Labels nest. `cistern report` shows memory by label, and a label's peak counts the labels inside
    it. A history keeps the first 255 bytes of a name. An object may be used again, by several
    threads, and as a function's decorator. A thread that enters a block leaves it itself. TypeError
    for a name that is no str; InvalidArgumentError for one with a null character.
    """

    def __init__(self, name: str) -> None:
        self._name = _arguments.text(name, "name")

    def __enter__(self) -> label:
        _labels.push(self._name, id(self))
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        depth = _labels.depth_of(id(self))
        if depth is not None:
            _labels.pop_to(depth)

    def __repr__(self) -> str:
        return f"cistern.label({self._name.decode()!r})"
