"""`cistern report`: one page that says who held the memory, and why a request did not fit."""

from __future__ import annotations

import os
import subprocess
import warnings
from typing import Iterable, List, Optional, SupportsIndex, Union

from . import _arguments
from ._arguments import PathLike
from .errors import CisternError
from .replay import Size, _command, _file, _several, _size, _text


class ReportError(CisternError, RuntimeError):
    """There is no report: a file cannot be read or written, the command does not take an argument, or
    this build cannot draw. The text is the command's message."""


def report(files: Union[PathLike, Iterable[PathLike]], out: PathLike, *, format: str = "html",
           at: Iterable[str] = (), policies: Iterable[str] = (), gpu: Optional[SupportsIndex] = None,
           capacity: Optional[Size] = None, max_unpacked: Optional[Size] = None) -> None:
    """Draws what was recorded to the file `out`, which is replaced.

    `files`: a path, or two that are compared: recordings, traces, dumps of a failure, snapshots of
    Cistern's and of PyTorch's, RMM logs (docs/report.md). `format`: "html", a page that needs no
    network, or "perfetto", "speedscope", "pickle" (for PyTorch's viewer), "json". `at`: moments to
    show exactly, as "12.5s", a name of mark(), or the number of an event. `policies`: other
    allocators whose reserved memory is shown, as for replay_all(); `capacity`: the most that these
    may reserve. `gpu`, `max_unpacked`: as for replay_all().

    Raises ReportError, and NotSupportedError if the command is missing. A UserWarning says what a
    file lacks. May be called from any thread.
    """
    named = [files] if isinstance(files, (str, bytes, os.PathLike)) else _several(files, "files")
    arguments = [_command(), "report", f"--format={_text(format, 'format')}",
                 "--output=" + os.fsdecode(_arguments.path(out, "out"))]
    arguments += [f"--at={_text(moment, 'at')}" for moment in _several(at, "at")]
    arguments += [f"--policy={_text(policy, 'policies')}" for policy in _several(policies, "policies")]
    arguments += [f"{option}={_size(value, name)}" for option, name, value in (
        ("--capacity", "capacity", capacity), ("--max-unpacked", "max_unpacked", max_unpacked)) if value is not None]
    if gpu is not None:
        arguments.append(f"--gpu={_arguments.whole(gpu, 'gpu')}")
    _draw([*arguments, *map(_file, named)])


def _draw(arguments: List[str]) -> None:
    ran = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    said = ran.stderr.decode("utf-8", "replace").strip()
    if ran.returncode != 0:
        raise ReportError(said or f"cistern report ended with {ran.returncode}")
    for note in said.splitlines():
        warnings.warn(note.replace("cistern: ", "", 1).replace("note: ", "", 1), stacklevel=3)
