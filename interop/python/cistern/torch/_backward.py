"""Labels of the backward pass.

A node of autograd remembers the labels under which its output was handed on. A pre-hook of the node
begins them when the backward pass reaches it, on the thread that runs the node. They last until the
next node that remembers some, or until the end of the pass.
"""

from __future__ import annotations

import threading
from typing import Any, List, Tuple

import torch
from torch.compiler import is_compiling

from .. import _labels

_KEY = "cistern labels"  # in a node's metadata
_OWN = b"backward"


def remember(*values: Any) -> None:
    """The nodes behind these tensors, in tuples, lists and dictionaries, begin the thread's labels in the
    backward pass. A node that remembers others keeps them: those are of a module further inside."""
    for value in values:
        if isinstance(value, torch.Tensor):
            node = value.grad_fn
            if node is not None and _KEY not in node.metadata:
                _mark(node)
        elif isinstance(value, (tuple, list)):
            remember(*value)
        elif isinstance(value, dict):
            remember(*value.values())


def _mark(node: Any) -> None:
    path = _labels.path()
    if path:
        node.metadata[_KEY] = True
        node.register_prehook(_Begin((*path, _OWN)))


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
        _labels.replace(before, self._path)
        stack.append((number, before, _labels.depth()))
        if not known:
            torch.autograd.Variable._execution_engine.queue_callback(_end)  # type: ignore[attr-defined, unused-ignore]


def _end() -> None:
    """At the end of a pass, on the thread that ran its last node."""
    number = torch._C._current_graph_task_id()
    stack = _passes.stack
    while any(each[0] == number for each in stack):
        _labels.pop_to(stack.pop()[1])
