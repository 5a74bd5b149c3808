"""Run by `_newer.py` in a process of its own, with the path of a compiled extension. It puts the
extension under PyTorch, on the simulated device, and calls the verbs of the allocator. It calls them
as the extension was compiled to (torch_self_test.cpp), and as PyTorch's own libraries were.

The exit status is 0 if all answers are right, 10 if one differs, and 1 if the test could not go on. The
last line of the standard output says what is wrong.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder: its `torch` would be no PyTorch

import ctypes
from typing import Optional

_DIFFERS = 10


def _text(said: bytes) -> str:
    return said.decode(errors="replace")


def _of_extension(path: str) -> Optional[str]:
    library = ctypes.CDLL(path)
    install, test = library.cistern_torch_install, library.cistern_torch_self_test
    install.restype = test.restype = ctypes.c_char_p
    refused = install()
    if refused is not None:
        raise RuntimeError(_text(refused))
    differs = ctypes.c_bool()
    wrong = test(ctypes.byref(differs))
    if wrong is not None and not differs:
        raise RuntimeError(_text(wrong))
    return None if wrong is None else _text(wrong)


def _of_pytorch() -> Optional[str]:
    from torch import _C

    backend = _C._cuda_getAllocatorBackend()
    if backend != "cistern":
        return f"PyTorch has the allocator {backend!r}"
    _C._cuda_resetPeakMemoryStats(0)
    _C._cuda_emptyCache()
    stats = _C._cuda_memoryStats(0)
    if stats["num_ooms"] != 0 or stats["allocation"]["all"]["current"] != 0:
        return "torch.cuda.memory_stats() has other figures than the extension"
    if _C._cuda_getMemoryFraction(0) != 1 or _C._cuda_isHistoryEnabled():
        return "PyTorch's functions reach other verbs than those that are meant"
    if set(_C._cuda_memorySnapshot(None)) < {"segments", "device_traces"}:
        return "torch.cuda.memory._snapshot() lacks parts"
    return None


def main(path: str) -> int:
    try:
        import torch  # noqa: F401  # its libraries, which the extension needs

        wrong = _of_extension(path) or _of_pytorch()
    except Exception as error:  # the first line: PyTorch puts frames of C++ below it
        print(f"{type(error).__name__}: {error}".partition("\n")[0])
        return 1
    if wrong is not None:
        print(wrong.partition("\n")[0])
    return 0 if wrong is None else _DIFFERS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
