"""Records a script's allocations while it runs: a trace for each GPU, in a folder of its own, until
the process ends."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Dict, Optional

from . import _native, _report


class Recording:
    """`begin()` it once; `finish()` is for the end of the process."""

    def __init__(self, wanted: Optional[str]) -> None:
        """`wanted`: the file to keep it in. OSError if that cannot be written."""
        if wanted is not None and not os.path.isabs(wanted):
            wanted = os.path.join(os.getcwd(), wanted)  # the script may go to another folder
        self._wanted = wanted
        if self._wanted is not None:
            _check_writable(self._wanted)
        self._process = 0

    def begin(self, script: str) -> None:
        """OSError or RuntimeError if there is no place for it."""
        self._folder = Path(tempfile.mkdtemp(prefix="cistern-"))
        try:
            _native.trace_begin(self._folder, Path(script).stem)
        except RuntimeError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._process = os.getpid()

    def finish(self) -> None:
        """Reports the figures, and keeps the traces if the user wants them."""
        if os.getpid() != self._process:
            return  # not begun; or a child of fork, which has its parent's exit handlers
        failed = _native.trace_end()
        _flush()
        if failed is not None:
            _report.say(f"cistern.torch: the trace is not whole: {failed}")
        traces = self._traces()
        kept = self._keep(traces)
        try:
            _report.say_all(traces)
        finally:
            if kept:
                shutil.rmtree(self._folder, ignore_errors=True)

    def _traces(self) -> Dict[int, Path]:
        """The traces by the number of the GPU, in that order."""
        return dict(sorted((int(path.stem), path) for path in self._folder.glob("*.trace")))

    def _keep(self, traces: Dict[int, Path]) -> bool:
        """Keeps the traces if the user wants them. Returns whether the folder is no longer
        needed."""
        if self._wanted is None:
            return True
        if not traces:
            _report.say("cistern.torch: --trace: nothing was recorded, and no file is written: the "
                        "script allocated no GPU memory through PyTorch")
        try:
            for number, (device, recorded) in enumerate(traces.items()):
                to = self._wanted if number == 0 else beside(self._wanted, device)
                _copy(recorded, to)
                if len(traces) > 1:
                    _report.say(f"cistern.torch: the trace of cuda:{device} is {to}")
        except OSError as reason:
            _report.say(
                f"cistern.torch: --trace: {reason}\n"
                f"cistern.torch: what was recorded is kept in {self._folder}"
            )
            return False
        return True


def beside(wanted: str, device: int) -> str:
    """For a GPU that is not the first that was used, t.trace.gz becomes t.cuda1.trace.gz."""
    plain, packed = (wanted[:-3], ".gz") if wanted.endswith(".gz") else (wanted, "")
    stem, suffix = os.path.splitext(plain)
    return f"{stem}.cuda{device}{suffix}{packed}"


def _check_writable(path: str) -> None:
    """Leaves an existing file as it is. OSError if a file cannot be written."""
    if not os.path.exists(path):
        path = os.path.realpath(path)  # of a link to what is not there yet
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(path)
    elif os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder")
    elif not os.access(path, os.W_OK):
        raise PermissionError(f"{path} cannot be written")


def _copy(recorded: Path, to: str) -> None:
    opened = gzip.open(to, "wb") if to.endswith(".gz") else open(to, "wb")
    with opened as out, recorded.open("rb") as text:
        shutil.copyfileobj(text, out)


def _flush() -> None:
    """Puts the script's output before the report. The script's streams may be closed, full or
    gone."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
