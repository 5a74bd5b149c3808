"""The hooks that label a module while its forward pass runs. Objects of classes, so that a labelled model
can still be pickled and copied."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from torch.compiler import is_compiling

from .. import _labels
from . import _backward


class Enter:
    """The forward pre-hook."""

    def __init__(self, name: bytes, backward: bool, outermost: bool) -> None:
        self._name, self._backward, self._outermost = name, backward, outermost

    def __call__(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        if is_compiling():
            return
        if self._outermost:  # PyTorch calls no hook at a KeyboardInterrupt: the last one's are still here
            _end(module)
        if self._backward:
            _backward.remember(args, kwargs)
        _labels.push(self._name, id(module))


class Leave:
    """The forward hook. It ends the labels that an exception left inside its own, too."""

    def __init__(self, backward: bool) -> None:
        self._backward = backward

    def __call__(self, module: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], result: Any) -> None:
        if is_compiling():
            return
        if self._backward:
            _backward.remember(result)
        _end(module)


def _end(module: Any) -> None:
    """There is none to end if a pre-hook before ours has failed."""
    depth = _labels.depth_of(id(module))
    if depth is not None:
        _labels.pop_to(depth)
