"""The report at the end of a script. It shows what the script requested and what was reserved for
it. It also shows what models of PyTorch's own allocator reserve when they replay its traces."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import List, Mapping, Tuple

from .. import CisternError, replay
from . import _native

_PEERS = (("PyTorch", "torch-rules"), ("PyTorch, expandable segments", "torch-expandable"))


def say(text: str) -> None:
    """Writes to the process's standard error, whatever the script has made of `sys.stderr`."""
    if sys.__stderr__ is None:
        return  # closed from the beginning: its number may be another file's by now
    with contextlib.suppress(OSError):
        with open(2, "w", errors="backslashreplace", closefd=False) as out:
            print(text, file=out)


def say_all(traces: Mapping[int, Path]) -> None:
    """`traces`: the trace of each GPU that was used, by its number."""
    summed = f", the sum of {len(traces)} GPUs" if len(traces) > 1 else ""
    lines = [f"  {name:30} {text}" for name, text in _rows(traces)]
    say("\n".join([f"cistern.torch: at the peak{summed}", *lines]))


def _no_gpu() -> str:
    torch = sys.modules.get("torch")
    found = torch is None or torch.cuda.is_available()
    return "" if found else ": PyTorch finds no GPU (see `cistern doctor`)"


def _rows(traces: Mapping[int, Path]) -> List[Tuple[str, str]]:
    if not traces:
        return [("nothing", "no use of CUDA memory was recorded" + _no_gpu())]
    asked: List[Tuple[str, str]] = []
    modelled = []
    for name, policy in _PEERS:
        try:
            played = [replay(path, policy, gpu_lag_us=10_000) for path in traces.values()]
        except (CisternError, OSError) as reason:
            modelled.append((name, str(reason).partition("\n")[0]))
            continue
        # The same under every policy: it is the program's.
        asked = [("asked for", _gib(sum(each.peak_requested_bytes for each in played)))]
        peak = sum(each.peak_reserved_bytes or 0 for each in played)
        modelled.append((name, _gib(peak) + " (modelled)"))
    reserved = sum(_native.peak_reserved(device) for device in traces)
    return [*asked, ("reserved", _gib(reserved)), *modelled]


def _gib(size: int) -> str:
    return f"{size / 2**30:10.3f} GiB"
