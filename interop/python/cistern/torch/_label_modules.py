"""`label_modules()`: the modules of a model as labels.

A module's label begins in a forward pre-hook and ends in a forward hook that an exception calls too
(`_module_hooks.py`). The backward pass runs in the reverse order, on threads of PyTorch's own. So each
node of autograd that a module hands out, or takes in, remembers the labels of its place
(`_backward.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Tuple

from .. import _arguments

if TYPE_CHECKING:
    import torch


class ModuleLabels:
    """The labels of a model's modules. `remove()` takes them away; as a context manager it does so at
    the end."""

    def __init__(self, handles: List[Any]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Takes the labels away. Call it while no module of the model runs. To call it twice does
        nothing."""
        while self._handles:
            self._handles.pop().remove()

    def __enter__(self) -> ModuleLabels:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def label_modules(model: torch.nn.Module, name: Optional[str] = None, *,
                  backward: bool = True) -> ModuleLabels:
    """Labels what each module of `model` allocates, as `cistern report` shows it: "GPT / layers.0 /
    attention". `name` is that of the model: its class, by default. With `backward` the label
    "backward" inside a module's has the memory of its backward pass.

    A module that has a label already keeps it, and one that comes later needs another call. Inside a
    region of torch.compile there is one label: the one around the region. Modules of TorchScript have
    none. TypeError unless `model` is a torch.nn.Module and `name` a str.
    """
    import torch

    from . import _module_hooks

    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    _arguments.flag(backward, "backward")
    root = _arguments.text(_class_name(model) if name is None else name, "name").decode()
    handles: List[Any] = []
    for own, module in _named(model, root, torch.jit.ScriptModule):
        if any(isinstance(hook, _module_hooks.Enter) for hook in module._forward_pre_hooks.values()):
            continue
        enter = _module_hooks.Enter(_arguments.text(own, "name"), backward, module is model)
        leave = _module_hooks.Leave(backward)
        handles.append(module.register_forward_pre_hook(enter, prepend=True, with_kwargs=True))
        handles.append(module.register_forward_hook(leave, with_kwargs=True, always_call=True))
    return ModuleLabels(handles)


def _class_name(model: Any) -> str:
    return type(getattr(model, "_orig_mod", model)).__name__  # of torch.compile


def _named(model: Any, root: str, left_out: type) -> Iterator[Tuple[str, Any]]:
    """Each module that can be called, with its name inside the one around it."""
    seen = set()

    def below(module: Any, own: str) -> Iterator[Tuple[str, Any]]:
        if id(module) in seen or isinstance(module, left_out):
            return
        seen.add(id(module))
        called = _has_forward(module)
        if called:
            yield own, module
        for child, inside in module.named_children():
            yield from below(inside, child if called else f"{own}.{child}")

    return below(model, root)


def _has_forward(module: Any) -> bool:
    """Lists and dictionaries of modules have none."""
    return getattr(module.forward, "__name__", "") != "_forward_unimplemented"
