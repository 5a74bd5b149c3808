"""Labels of the backward pass.

A node of autograd remembers the labels under which its output was handed on. A pre-hook of the node
begins them when the backward pass reaches it, on the thread that runs the node. They last until the
next node that remembers some, or until the end of the pass.
"""

from __future__ import annotations

import threading
from typing import Any, Iterator, List, Tuple

import torch
from torch.compiler import is_compiling

from .. import _labels

_KEY = "cistern labels"  # in a node's metadata
_OWN = b"backward"


def remember(*values: Any) -> None:
    """The nodes behind these tensors begin the thread's labels in the backward pass, unless they
    remember others: those of a module further inside."""
    path: _labels.Path = ()
    for node in _nodes(values):
        metadata = node.metadata
        if _KEY in metadata:
            continue
        path = path or (*_labels.path(), _OWN)
        if len(path) > 1:
            metadata[_KEY] = True
            node.register_prehook(_Begin(path))


def _nodes(values: Any) -> Iterator[Any]:
    """The nodes of autograd behind the tensors in tuples, lists and dictionaries."""
    for value in values:
        if isinstance(value, torch.Tensor):
            node = value.grad_fn
            if node is not None:
                yield node
        elif isinstance(value, (tuple, list)):
            yield from _nodes(value)
        elif isinstance(value, dict):
            yield from _nodes(value.values())


class _Passes(threading.local):
    """The passes that this thread runs nodes of, the outermost first: the number of each, and the
    depths of labels before its own and behind them."""

    def __init__(self) -> None:
        self.stack: List[Tuple[int, int, int]] = []


_passes = _Passes()


class _Begin:
    """The pre-hook of a node."""

    __slots__ = ("_path",)

    def __init__(self, path: _labels.Path) -> None:
        self._path = path

    def __call__(self, gradients: Any) -> None:
        if is_compiling():
            return
        number = torch._C._current_graph_task_id()
        stack = _passes.stack
        known = any(each[0] == number for each in stack)
        while stack and stack[-1][0] != number and (known or stack[-1][2] >= _labels.depth()):
            _labels.pop_to(stack.pop()[1])  # it has ended
        before = stack.pop()[1] if known else _labels.depth()
        _labels.pop_to(before)
        _labels.push_path(self._path)
        stack.append((number, before, _labels.depth()))
        if not known:
            torch.autograd.Variable._execution_engine.queue_callback(_end)  # type: ignore[attr-defined, unused-ignore]


def _end() -> None:
    """At the end of a pass, on the thread that ran its last node."""
    number = torch._C._current_graph_task_id()
    stack = _passes.stack
    while any(each[0] == number for each in stack):
        _labels.pop_to(stack.pop()[1])
