"""`cistern replay` on a recorded program: how much would an allocator reserve for it?"""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from dataclasses import dataclass, fields
from typing import Any, Dict, List, Mapping, Optional, SupportsIndex, Union

from . import _arguments, _places
from ._arguments import Conf, PathLike
from .errors import CisternError, InvalidArgumentError, NotSupportedError


class ReplayError(CisternError, RuntimeError):
    """The replay has no result. The file cannot be read, the command does not take an argument, or
    the device is not here. Or the trace lacks what the policy depends on ("stream_uses" in
    docs/traces.md). The text is the command's message."""


@dataclass(frozen=True)
class Replay:
    """The results of a replay: the keys of `cistern replay --json` (docs/replay.md)."""

    trace: str
    policy: str
    #: "sim", "cuda" or "hip".
    device: str
    events: int
    #: Whether every request was served, and no race was found.
    ok: bool
    #: The most bytes that the program asked for at once.
    peak_requested_bytes: int
    #: The most bytes taken from the device at once, up to the failure if there was one.
    peak_reserved_bytes: int
    #: peak_requested_bytes / peak_reserved_bytes; None when not ok.
    efficiency: Optional[float]
    #: The peak requested divided by the smallest capacity that serves it. None unless `fit` was
    #: asked for, and for policies that cannot be held to a capacity ("async", "driver-pool").
    fit: Optional[float]
    ns_per_event: float
    device_calls: Mapping[str, int]
    modelled_device_ms: Optional[float]
    host_bytes_peak: int
    background_calls: Mapping[str, int]
    modelled_background_ms: Optional[float]
    pages: Mapping[str, int]
    calls_by_round: List[int]
    #: The file that was replayed.
    file: Optional[str] = None
    #: Why it is not ok, with the report of an allocator that is out of memory; "" when it is.
    failure: str = ""


def _size(value: Union[SupportsIndex, str], what: str) -> str:
    if isinstance(value, str):
        return _text(value, what)
    return str(_arguments.whole(value, what))


def _command() -> str:
    program = _places.command()
    if program is None:
        looked = "".join(f"\n  {place}" for place in _places.command_candidates())
        raise NotSupportedError(
            f"the command `cistern`, which replays, is not found; looked for:{looked}\nA wheel has it "
            "where CLI11, nlohmann_json and zlib were found when it was built.")
    return str(program)


def _file(trace: PathLike) -> str:
    name = os.fsdecode(_arguments.path(trace, "trace"))
    return os.path.join(".", name) if name.startswith("-") else name


def _row(line: str, failure: str) -> Replay:
    values: Dict[str, Any] = json.loads(line)
    if values["peak_reserved_bytes"] is None:
        raise ReplayError(failure)
    known = {field.name for field in fields(Replay)} & values.keys()
    return Replay(**{name: values[name] for name in known}, failure="" if values["ok"] else failure)


def replay(trace: PathLike, policy: str = "cistern", *, conf: Optional[Conf] = None,
           capacity: Union[SupportsIndex, str, None] = None, fit: bool = False,
           device: str = "sim", gpu_lag_us: SupportsIndex = 0, repeat: SupportsIndex = 1,
           threads: SupportsIndex = 1, check: bool = False,
           gpu: Optional[SupportsIndex] = None) -> Replay:
    """Replays a recorded program (docs/traces.md has the formats) under a policy, and returns the
    results.

    `policy`: "cistern", "torch-rules", "torch-expandable", "driver-pool", "direct" or "async";
    `conf`: options of policy "cistern", after those of $CISTERN_CONF; `capacity`: what may be reserved, in
    bytes or as "16GiB"; `fit`: search for the smallest capacity that serves the trace; `device`: "sim",
    "cuda", "hip" or "auto"; `gpu_lag_us`: how far the simulated GPU is behind the host; `repeat`: rounds
    with one allocator; `threads`: deal the events over so many; `check`: look for races (slow);
    `gpu`: the number of one GPU of a PyTorch memory snapshot.

    A program that is not served is a result (`ok`, `failure`), not an error. Raises ReplayError, also
    for a file that records nothing, and for a snapshot of several GPUs without `gpu`. Raises
    NotSupportedError if the command is missing. Warns of memory in a snapshot that has no history.
    """
    if "," in _text(policy, "policy"):
        raise InvalidArgumentError(f"policy is {policy!r}: must be one policy")
    arguments = [_command(), "replay", "--json", f"--policy={policy}",
                 f"--device={_text(device, 'device')}",
                 f"--gpu-lag-us={_arguments.whole(gpu_lag_us, 'gpu_lag_us')}",
                 f"--repeat={_arguments.whole(repeat, 'repeat')}",
                 f"--threads={_arguments.whole(threads, 'threads')}"]
    options = _arguments.conf(conf)
    if options:
        arguments.append("--conf=" + options.decode())
    if capacity is not None:
        arguments.append("--capacity=" + _size(capacity, "capacity"))
    if gpu is not None:
        arguments.append(f"--gpu={_arguments.whole(gpu, 'gpu')}")
    arguments += [flag for flag, wanted in (("--fit", fit), ("--check", check)) if wanted]
    ran = subprocess.run([*arguments, _file(trace)], stdin=subprocess.DEVNULL, capture_output=True,
                         encoding="utf-8", errors="replace")
    said = ran.stderr.strip()
    rows = ran.stdout.splitlines()
    if len(rows) > 1:
        names = ", ".join(json.loads(row)["trace"] for row in rows)
        raise ReplayError(f"{_file(trace)}: records several GPUs: choose one by gpu=N ({names})")
    if len(rows) != 1 or ran.returncode not in (0, 1):
        raise ReplayError(said or f"{arguments[0]} ended with {ran.returncode} and {len(rows)} rows")
    if said and ran.returncode == 0:
        warnings.warn(said, stacklevel=2)
    return _row(rows[0], said)


def _text(value: str, what: str) -> str:
    return _arguments.text(value, what).decode()
