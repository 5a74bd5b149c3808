"""Lines at the end of a script: what it requested, and what was reserved for it. A comparison has what models of
PyTorch's own allocator reserve when they replay its traces, too."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

from .. import CisternError, replay
from . import _native

_PEERS = (("PyTorch", "torch-rules"), ("PyTorch, expandable segments", "torch-expandable"))
_MORE = ("--compare before the script adds what PyTorch's own allocator would have reserved, and --report PAGE.html "
         "draws who held the memory")


def say(text: str) -> None:
    """Writes to the process's standard error, whatever the script has made of `sys.stderr`."""
    if sys.__stderr__ is None:
        return  # closed from the beginning: its number may be another file's by now
    with contextlib.suppress(OSError):
        with open(2, "w", errors="backslashreplace", closefd=False) as out:
            print(text, file=out)


def rank() -> Optional[str]:
    """The number of this process, if torchrun has begun several."""
    number = os.environ.get("RANK", "")
    return number if number.isdecimal() and os.environ.get("WORLD_SIZE", "1") != "1" else None


def say_usage(recorded: bool) -> None:
    """`recorded`: the user knows of the options that tell more."""
    lines = [*_usage(_native.usage()), *([] if recorded else [_MORE])]
    say("\n".join(f"cistern.torch: {line}" for line in lines))


def _usage(gpus: Mapping[int, _native.Usage]) -> List[str]:
    process = "the script's process" + ("" if rank() is None else f" of rank {rank()}")
    if not gpus:
        return [f"{process} requested no GPU memory through PyTorch",
                "PyTorch finds " + ("a GPU, whose memory Cistern would have served" if _finds_gpu() else
                                    "no GPU, and `cistern doctor` says what this machine has")]
    most = max(gpus, key=lambda device: gpus[device].requested_peak)
    name = f"cuda:{most}" + (f", the fullest of {len(gpus)} GPUs" if len(gpus) > 1 else "")
    taken, returned, retries, failed, moved, call_ns = (
        sum(getattr(each, count) for each in gpus.values())
        for count in ("taken", "returned", "retries", "out_of_memory", "moved", "call_ns"))
    return [f"{process} requested {_size(gpus[most].requested_peak)} at the peak on {name}, and Cistern reserved "
            f"{_size(gpus[most].reserved_peak)}",
            f"Cistern took memory from the driver {_count(taken, 'time')}, gave some back {_count(returned, 'time')} and "
            f"moved {_count(moved, 'page')}, in {call_ns / 1e9:.3f} s; {_count(retries, 'request')} waited for that, and {failed} failed for lack of memory"]


def _finds_gpu() -> bool:
    torch = sys.modules.get("torch")
    return torch is None or torch.cuda.is_available()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _size(size: int) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.2f} MiB"


def say_comparison(traces: Mapping[int, Path]) -> None:
    """`traces`: the trace of each GPU that was used, by its number."""
    summed = f", the sum of {len(traces)} GPUs" if len(traces) > 1 else ""
    lines = [f"  {name:30} {text}" for name, text in _rows(traces)]
    say("\n".join([f"cistern.torch: at the peak{summed}", *lines]))


def _rows(traces: Mapping[int, Path]) -> List[Tuple[str, str]]:
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
    reserved = sum(each.reserved_peak for each in _native.usage().values())
    return [*asked, ("reserved", _gib(reserved)), *modelled]


def _gib(size: int) -> str:
    return f"{size / 2**30:10.3f} GiB"
