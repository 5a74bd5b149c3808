"""`cistern replay` on a recorded program: how much would an allocator reserve for it?"""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from dataclasses import dataclass, fields
from typing import (Any, BinaryIO, Dict, Iterable, List, Mapping, Optional, Sequence, SupportsIndex, Tuple, TypeVar,
                    Union, cast)

from . import _arguments, _places
from ._arguments import Conf, PathLike
from .errors import CisternError, InvalidArgumentError, NotSupportedError


#: A recorded program: the path of its file, or a file that is open for reading bytes.
Trace = Union[PathLike, BinaryIO]
#: A number of bytes: 1 << 30, or "1GiB".
Size = Union[SupportsIndex, str]
_T = TypeVar("_T")


class ReplayError(CisternError, RuntimeError):
    """The replay has no result. The file cannot be read, the command does not take an argument, or
    the device is not here. Or the trace lacks what the policy depends on ("stream_uses" in
    docs/traces.md). The text is the command's message."""


@dataclass(frozen=True)
class Replay:
    """The results of a replay: the keys of `cistern replay --json`, of which docs/replay.md has more.

    trace                 the program's name
    policy                the allocator's
    device                "sim", "cuda" or "hip"
    events                allocations, frees and ends of uses in the trace
    ok                    whether every request was served, and no race was found
    peak_requested_bytes  the most that the program asked for at once
    peak_reserved_bytes   the most taken from the device at once, up to the failure if there was one.
                          This and the figures below are None if the trace lacks what the policy
                          depends on (docs/traces.md)
    efficiency            peak_requested_bytes / peak_reserved_bytes; None when not ok
    fit                   peak_requested_bytes / fit_bytes
    fit_bytes             the smallest capacity that serves the program. Both are None unless `fit` was
                          asked for, and for policies that cannot be held to a capacity ("async",
                          "driver-pool")
    ns_per_event          time of this machine's processor for each event
    device_calls          calls to the device that the program waited for, by name
    modelled_device_ms    what these would take on a real GPU; None on one
    program_ms            how long the program took when it was recorded, of all rounds; None without
                          times
    host_bytes_peak       the most host memory that the bookkeeping took
    background_calls      calls to the device that the program did not wait for, by name
    modelled_background_ms  what these would take
    pages                 what became of pages, by name; None without pages
    calls_by_round        device_calls of each round
    checked, races        whether races were looked for, and how many were found; None if they were not
    conf                  the options that differ from their defaults; None for a policy that reads none
    capacity_bytes        the capacity, if one was given
    gpu_lag_us, repeat, threads   as they were asked for
    version               Cistern's
    file                  the file that was replayed; None for a program that is made up
    failure               why it is not ok, with the report of an allocator that is out of memory; "" when
                          it is
    """

    trace: str
    policy: str
    device: str
    events: int
    ok: bool
    peak_requested_bytes: int
    peak_reserved_bytes: Optional[int]
    efficiency: Optional[float]
    fit: Optional[float]
    fit_bytes: Optional[int]
    ns_per_event: Optional[float]
    device_calls: Optional[Mapping[str, int]]
    modelled_device_ms: Optional[float]
    program_ms: Optional[float]
    host_bytes_peak: Optional[int]
    background_calls: Optional[Mapping[str, int]]
    modelled_background_ms: Optional[float]
    pages: Optional[Mapping[str, int]]
    calls_by_round: Optional[List[int]]
    checked: bool
    races: Optional[int]
    conf: Optional[str]
    capacity_bytes: Optional[int]
    gpu_lag_us: int
    repeat: int
    threads: int
    version: str
    file: Optional[str] = None
    failure: str = ""


def _size(value: Size, what: str) -> str:
    if isinstance(value, str):
        return _text(value, what)
    return f"{_arguments.whole(value, what)}B"


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


def replay(trace: Optional[Trace] = None, policy: str = "cistern", *,
           generate: Optional[str] = None, conf: Union[Conf, Sequence[Conf], None] = None,
           page_size: Optional[Size] = None, no_recycle: bool = False,
           capacity: Optional[Size] = None, fit: bool = False, device: str = "sim",
           gpu_lag_us: SupportsIndex = 0, repeat: SupportsIndex = 1, threads: SupportsIndex = 1,
           check: bool = False, max_unpacked: Optional[Size] = None,
           plot: Optional[PathLike] = None, gpu: Optional[SupportsIndex] = None,
           progress: bool = True) -> Replay:
    """Replays one program under a policy, and returns the results.

    `trace`: the path of a recorded program (docs/traces.md has the formats), or a binary file, which
    is read to its end. `generate`: in its place, a program that is made up, as "train:1".
    `policy`: "cistern", "torch-rules", "torch-expandable", "driver-pool", "direct" or "async". `conf`,
    `page_size`, `no_recycle`, `capacity`, `fit`, `device`, `gpu_lag_us`, `repeat`, `threads`, `check`,
    `max_unpacked`, `plot`, `gpu` and `progress` are as for replay_all().

    A program that is not served is a result (`ok`, `failure`), not an error. Raises ReplayError, also
    for a file that records nothing, for a snapshot of several GPUs without `gpu`, and for a trace that
    lacks what the policy depends on. Raises NotSupportedError if the command is missing, and
    InvalidArgumentError unless it is one program under one policy. May be called from any thread.
    """
    if (trace is None) == (generate is None):
        raise InvalidArgumentError("replay needs either a trace or generate=, and not both")
    if "," in _text(policy, "policy"):
        raise InvalidArgumentError(f"policy is {policy!r}: must be one policy")
    rows = replay_all([] if trace is None else [trace], [policy], generate=[] if generate is None else [generate],
                      conf=conf, page_size=page_size, no_recycle=no_recycle, capacity=capacity, fit=fit,
                      device=device, gpu_lag_us=gpu_lag_us, repeat=repeat, threads=threads, check=check,
                      max_unpacked=max_unpacked, plot=plot, gpu=gpu, progress=progress)
    if len(rows) != 1 and generate is not None:
        raise InvalidArgumentError(f"generate is {generate!r}, which is {len(rows)} programs: replay_all takes several")
    if len(rows) != 1:
        names = ", ".join(row.trace for row in rows)
        raise ReplayError(f"{rows[0].file}: records several GPUs: choose one by gpu=N ({names})")
    if rows[0].peak_reserved_bytes is None:
        raise ReplayError(f"{rows[0].trace}, policy {rows[0].policy}: {rows[0].failure}")
    return rows[0]


def replay_all(traces: Iterable[Trace] = (), policies: Iterable[str] = ("cistern",), *,
               generate: Iterable[str] = (), conf: Union[Conf, Sequence[Conf], None] = None,
               page_size: Optional[Size] = None, no_recycle: bool = False,
               capacity: Optional[Size] = None, fit: bool = False, device: str = "sim",
               gpu_lag_us: SupportsIndex = 0, repeat: SupportsIndex = 1, threads: SupportsIndex = 1,
               check: bool = False, max_unpacked: Optional[Size] = None,
               plot: Optional[PathLike] = None, gpu: Optional[SupportsIndex] = None,
               progress: bool = True) -> List[Replay]:
    """Replays each program under each policy, and returns the results: those of the first program
    under all policies, then those of the next.

    `traces`, `policies`: as for replay(); one of the traces may be a binary file. `generate`:
    programs that are made up, after the traces: "train:1", "all:0-3".

    `conf`: options of policy "cistern", after those of $CISTERN_CONF; of several the last one wins.
    `page_size`: as page_size:SIZE at the end of conf; `no_recycle`: as recycle:off there.
    `capacity`: what may be reserved, in bytes or as "16GiB"; `fit`: search for the smallest capacity
    that serves the trace; `device`: "sim", "cuda", "hip" or "auto"; `gpu_lag_us`: how far the
    simulated GPU is behind the host; `repeat`: rounds with one allocator; `threads`: deal the events
    over so many; `check`: look for races (slow); `max_unpacked`: the most bytes that a gzip may
    unpack to; `plot`: draw one program's memory over time to this file, an SVG; `gpu`: of PyTorch memory
    snapshots, the GPU of this number alone, where all that they record are programs else;
    `progress`: if the standard error is a terminal, show there how far it is and what time is left,
    once it has taken two seconds.

    Raises ReplayError if a file cannot be read; nothing is replayed then. A UserWarning says what a
    file lacks, and which argument has no effect, as `conf` for a policy that reads no options.
    """
    arguments = [_command(), "replay", "--json", f"--device={_text(device, 'device')}",
                 f"--gpu-lag-us={_arguments.whole(gpu_lag_us, 'gpu_lag_us')}",
                 f"--repeat={_arguments.whole(repeat, 'repeat')}",
                 f"--threads={_arguments.whole(threads, 'threads')}"]
    arguments += [f"--policy={_text(policy, 'policy')}" for policy in _several(policies, "policies")]
    arguments += [f"--generate={_text(program, 'generate')}" for program in _several(generate, "generate")]
    arguments += [f"--conf={options}" for options in _confs(conf)]
    arguments += [f"{option}={_size(value, name)}" for option, name, value in (
        ("--page-size", "page_size", page_size), ("--capacity", "capacity", capacity),
        ("--max-unpacked", "max_unpacked", max_unpacked)) if value is not None]
    arguments += [option for option, name, wanted in (
        ("--fit", "fit", fit), ("--check", "check", check), ("--no-recycle", "no_recycle", no_recycle))
        if _arguments.flag(wanted, name)]
    if gpu is not None:
        arguments.append(f"--gpu={_arguments.whole(gpu, 'gpu')}")
    if plot is not None:
        arguments.append("--plot=" + os.fsdecode(_arguments.path(plot, "plot")))
    files, content = _files(_several(traces, "traces"))
    ran = _run([*arguments, *files], content, progress)
    return _rows(ran.returncode, ran.stdout.decode("utf-8", "replace"), ran.stderr.decode("utf-8", "replace"))


def _run(arguments: List[str], content: bytes, progress: bool) -> "subprocess.CompletedProcess[bytes]":
    """Its messages are captured; its line of progress goes to our standard error."""
    shown = _arguments.flag(progress, "progress") and os.isatty(2)
    terminal = [os.dup(2)] if shown else []
    try:
        more = [f"--progress=/dev/fd/{number}" for number in terminal]
        return subprocess.run([*arguments[:2], *more, *arguments[2:]], input=content, capture_output=True,
                              pass_fds=terminal)
    finally:
        for number in terminal:
            os.close(number)


def _several(values: Iterable[_T], what: str) -> List[_T]:
    if isinstance(values, (str, bytes, os.PathLike)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{what} must be several, as a list, not {type(values).__name__}")
    return list(values)


def _confs(conf: Union[Conf, Sequence[Conf], None]) -> List[str]:
    several = [conf] if conf is None or isinstance(conf, (str, Mapping)) else conf
    if not isinstance(several, (list, tuple)):
        raise TypeError(f"conf must be a str, a mapping, or a list of them, not {type(conf).__name__}")
    options = (_arguments.conf(one) for one in several)
    return [text.decode() for text in options if text]


def _files(traces: List[Trace]) -> Tuple[List[str], bytes]:
    """The arguments of the command, and what it reads from its standard input."""
    names: List[str] = []
    content: Optional[bytes] = None
    for trace in traces:
        if not hasattr(trace, "read"):
            names.append(_file(trace))
            continue
        if content is not None:
            raise InvalidArgumentError("traces has two files that are open already: one of them may be")
        content = cast("BinaryIO", trace).read()
        if not isinstance(content, bytes):
            raise TypeError(f"trace must be a binary file, and its read() gave {type(content).__name__}")
        names.append("-")
    return names, content or b""


def _rows(status: int, printed: str, said: str) -> List[Replay]:
    """The results. The command's other messages are warnings."""
    rows = [cast(Dict[str, Any], json.loads(line)) for line in printed.splitlines()]
    if status != (not all(row["ok"] for row in rows)) or not rows:
        raise ReplayError(said.strip() or f"cistern replay ended with {status} and {len(rows)} rows")
    for note in said.strip().splitlines():
        warnings.warn(note.replace("cistern: ", "", 1).replace("note: ", "", 1), stacklevel=3)
    names = {field.name for field in fields(Replay)}
    return [Replay(**{name: row[name] for name in names & row.keys()}) for row in rows]


def _text(value: str, what: str) -> str:
    return _arguments.text(value, what).decode()
