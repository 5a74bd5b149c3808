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
import os
import threading
import warnings
from typing import Any, Iterator, List, Optional

from ._contents import Contents
from .torch import _enable, _regions

__all__ = ["TorchMemorySaver", "configure_subprocess", "torch_memory_saver"]

DEFAULT_TAG = "default"


def _name(tag: str, backup: bool) -> str:
    """Tensors of a tag that are kept have a pool of their own."""
    return f"torch_memory_saver/{'kept' if backup else 'dropped'}/{tag}"


def _check_backup(enabled: bool, backend: Optional[str]) -> None:
    if backend is None:
        return
    if not enabled:
        raise ValueError("cistern.torch_memory_saver: cpu_backup_backend needs enable_cpu_backup=True")
    if backend != "pinned":
        raise NotImplementedError(f"cistern.torch_memory_saver: cpu_backup_backend {backend!r}: backups are pinned")


_FATES = {
    None: _regions.HostMemory.KEEP,
    False: _regions.HostMemory.GIVE_BACK,
    True: _regions.HostMemory.KEEP_SAVED,
}


def _retained_by_the_environment() -> Optional[bool]:
    return True if os.environ.get("TMS_RETAIN_CPU_BACKUP", "") in ("1", "true", "TRUE", "yes", "YES") else None


class _Disabled(threading.local):
    """How often the thread has disabled regions."""

    times = 0


class TorchMemorySaver:
    """Regions whose memory can be paused: given back to the device, at the same addresses."""

    def __init__(self) -> None:
        self._off = _Disabled()
        self._hook_mode = "preload"
        #: The fate of backups at resume(). True: they stay, for get_cpu_backup, until the next pause of their
        #: tag. False: their host memory goes back. None: it stays pinned for the next pause of any tag.
        self.retain_cpu_backup: Optional[bool] = _retained_by_the_environment()

    @property
    def enabled(self) -> bool:
        """Whether Cistern is under PyTorch, so that regions can be paused."""
        return _enable.enabled() == "native"

    @property
    def hook_mode(self) -> str:
        """Has no effect: nothing is hooked."""
        return self._hook_mode

    @hook_mode.setter
    def hook_mode(self, mode: str) -> None:
        if mode not in ("preload", "torch"):
            raise ValueError(f"cistern.torch_memory_saver: hook_mode {mode!r} is neither 'preload' nor 'torch'")
        self._hook_mode = mode

    @property
    def memory_margin_bytes(self) -> int:
        """Has no effect: a request takes memory while the device has some."""
        return 0

    @memory_margin_bytes.setter
    def memory_margin_bytes(self, value: int) -> None:
        if value:
            warnings.warn("cistern.torch_memory_saver: memory_margin_bytes has no effect; "
                          "torch.cuda.set_per_process_memory_fraction sets a limit", stacklevel=2)

    @contextlib.contextmanager
    def region(self, tag: str = DEFAULT_TAG, enable_cpu_backup: bool = False,
               enable_disk_backup: bool = False, cpu_backup_backend: Optional[str] = None) -> Iterator[None]:
        """CUDA tensors made until the end belong to the `tag`. With `enable_cpu_backup` their bytes are the
        same after resume(); without it they are anything. NotImplementedError for `enable_disk_backup`,
        and for a `cpu_backup_backend` other than "pinned"."""
        _check_backup(enable_cpu_backup, cpu_backup_backend)
        if enable_disk_backup:
            raise NotImplementedError("cistern.torch_memory_saver: enable_disk_backup: backups are in host memory")
        if self._off.times:
            yield
            return
        with _regions.region(_name(tag, enable_cpu_backup)):
            yield

    @contextlib.contextmanager
    def cuda_graph(self, cuda_graph: Any, pool: Any = None, stream: Any = None,
                   capture_error_mode: str = "global", tag: str = DEFAULT_TAG,
                   enable_cpu_backup: bool = False, cpu_backup_backend: Optional[str] = None) -> Iterator[None]:
        """torch.cuda.graph of `cuda_graph`, with its `stream` and `capture_error_mode`. Its memory belongs to
        the `tag`, and graphs of the tag share it if they are given the same `pool`. `enable_cpu_backup` and
        `cpu_backup_backend` are as region() has them."""
        import torch

        _check_backup(enable_cpu_backup, cpu_backup_backend)
        of = _regions.pool_of_graph(_name(tag, enable_cpu_backup), cuda_graph, pool).id
        with torch.cuda.graph(cuda_graph, pool=of, stream=stream, capture_error_mode=capture_error_mode):
            yield

    @contextlib.contextmanager
    def disable(self) -> Iterator[None]:
        """Until the end, CUDA tensors that this thread makes belong to no region, also within one."""
        with contextlib.ExitStack() as stack:
            if _enable.enabled() == "native":
                stack.enter_context(_regions.outside())
            self._off.times += 1
            try:
                yield
            finally:
                self._off.times -= 1

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
            _regions.wake_with(_FATES[self.retain_cpu_backup], *names)

    def get_cpu_backup(self, x: Any, zero_copy: bool = False) -> Any:
        """A tensor of the CPU with the bytes that `x` had at its last pause; None if it has no backup. Backups
        outlive resume() with `retain_cpu_backup`. It is always a copy, whatever `zero_copy` says. ValueError
        unless `x` is contiguous and on a GPU."""
        if not x.is_cuda or not x.is_contiguous():
            raise ValueError("cistern.torch_memory_saver: a backup is that of a contiguous tensor on a GPU")
        return _regions.saved(x)

    @staticmethod
    def _names(tag: Optional[str], backup: bool) -> List[str]:
        if tag is not None:
            return [name for name in (_name(tag, backup),) if name in _regions._regions]
        return [name for name in _regions._regions if name.startswith(_name("", backup))]


@contextlib.contextmanager
def configure_subprocess() -> Iterator[None]:
    """Does nothing: a child calls cistern.torch.enable() itself, and nothing has to be preloaded."""
    yield


torch_memory_saver = TorchMemorySaver()
