"""The interface of the package torch_memory_saver, on Cistern: moving is one import.

    from cistern.torch_memory_saver import torch_memory_saver

    with torch_memory_saver.region("weights", enable_cpu_backup=True):
        model = Model().cuda()
    torch_memory_saver.pause("weights")
    ...
    torch_memory_saver.resume("weights")

Call cistern.torch.enable() before the first CUDA tensor, or run the script by `python -m cistern.torch`.
Nothing is preloaded. docs/sleep.md says what differs.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Optional

from ._contents import Contents
from .torch import _enable, _regions

__all__ = ["TorchMemorySaver", "configure_subprocess", "torch_memory_saver"]

DEFAULT_TAG = "default"


def _name(tag: str, backup: bool) -> str:
    """Tensors of a tag that are kept have a pool of their own."""
    return f"torch_memory_saver/{'kept' if backup else 'dropped'}/{tag}"


class TorchMemorySaver:
    """Regions whose memory can be paused: given back to the device, at the same addresses."""

    def __init__(self) -> None:
        self._off = 0

    @property
    def enabled(self) -> bool:
        """Whether Cistern is under PyTorch, so that regions can be paused."""
        return _enable.enabled() == "native"

    @contextlib.contextmanager
    def region(self, tag: str = DEFAULT_TAG, enable_cpu_backup: bool = False) -> Iterator[None]:
        """CUDA tensors made until the end belong to the tag. With `enable_cpu_backup` their bytes are the
        same after resume(); without it they are anything."""
        if self._off:
            yield
            return
        with _regions.region(_name(tag, enable_cpu_backup)):
            yield

    @contextlib.contextmanager
    def cuda_graph(self, cuda_graph: Any, pool: Any = None, stream: Any = None,
                   capture_error_mode: str = "global", tag: str = DEFAULT_TAG,
                   enable_cpu_backup: bool = False) -> Iterator[None]:
        """torch.cuda.graph(cuda_graph, stream=stream, capture_error_mode=capture_error_mode), whose memory
        belongs to the `tag`, as region() says of `enable_cpu_backup`. ValueError if a `pool` is given: the
        tag's serves."""
        import torch

        if pool is not None:
            raise ValueError("cistern.torch_memory_saver: the graph's pool is the tag's: leave `pool` out")
        of = _regions.pool(_name(tag, enable_cpu_backup)).id
        with torch.cuda.graph(cuda_graph, pool=of, stream=stream, capture_error_mode=capture_error_mode):
            yield

    @contextlib.contextmanager
    def disable(self) -> Iterator[None]:
        """Until the end, region() has no effect."""
        self._off += 1
        try:
            yield
        finally:
            self._off -= 1

    def pause(self, tag: Optional[str] = None) -> None:
        """Gives the memory of the tag, or of all tags, back to the device. The program does not use it
        before resume()."""
        for backup in (True, False):
            names = self._names(tag, backup)
            if names:
                _regions.sleep(*names, contents=Contents.SAVE if backup else Contents.DROP)

    def resume(self, tag: Optional[str] = None) -> None:
        """The memory of the tag, or of all tags, is at its addresses again."""
        names = self._names(tag, True) + self._names(tag, False)
        if names:
            _regions.wake(*names)

    @staticmethod
    def _names(tag: Optional[str], backup: bool) -> List[str]:
        if tag is not None:
            return [name for name in (_name(tag, backup),) if name in _regions._pools]
        return [name for name in _regions._pools if name.startswith(_name("", backup))]


@contextlib.contextmanager
def configure_subprocess() -> Iterator[None]:
    """Does nothing: a child calls cistern.torch.enable() itself, and nothing has to be preloaded."""
    yield


torch_memory_saver = TorchMemorySaver()
