"""Records a script's allocations while it runs, if the user wants what needs a record: a trace for each GPU, in a
folder of its own, until the process ends. For a page these are histories, which have stacks and labels too."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Dict, List, Optional

from .. import CisternError, report
from . import _native, _report, enabled


class Recording:
    """`begin()` it once; `finish()` is for the end of the process."""

    def __init__(self, trace: Optional[str], page: Optional[str], compare: bool) -> None:
        """The files that the user wants. OSError, which names the option, if one cannot be written."""
        self._trace, self._page, self._compare = _place("--trace", trace), _place("--report", _of_rank(page)), compare
        self._records = compare or trace is not None or page is not None
        self._is_missing = False  # a file that the user wants, because nothing was recorded
        self.script_failed = False
        self._process = 0

    def begin(self, name: str) -> None:
        """`name`: of the program. OSError or RuntimeError if there is no place for a record."""
        if self._records:
            self._record(name)
        self._process = os.getpid()

    def _record(self, name: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="cistern-"))
        try:
            _native.record_begin(self._folder, name, history=self._page is not None)
        except RuntimeError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def finish(self) -> None:
        """Says what was used, and makes what the user wants."""
        if os.getpid() != self._process:
            return  # not begun; or a child of fork, which has its parent's exit handlers
        failed = _native.record_end(history=self._page is not None) if self._records else None
        _flush()
        if enabled() == "native":
            _report.say_usage(recorded=self._records)
        if not self._records:
            return
        if failed is not None:
            _report.say(f"cistern.torch: the trace is not whole: {failed}")
        traces = self._traces()
        done = False
        try:
            done = self._keep(traces)
            if self._compare and traces:
                _report.say_comparison(traces)
            done = self._draw(traces) and done
        finally:
            if done:
                shutil.rmtree(self._folder, ignore_errors=True)
            else:
                _report.say(f"cistern.torch: what was recorded is kept in {self._folder}")
        if self._is_missing and not self.script_failed:
            os._exit(1)  # as `cistern run` ends; an exit handler has no other way, and this one is the last

    def _traces(self) -> Dict[int, Path]:
        """The traces by the number of the GPU, in that order."""
        return dict(sorted((int(path.stem), path) for path in self._folder.glob("*.trace")))

    def _keep(self, traces: Dict[int, Path]) -> bool:
        """Keeps the traces if the user wants them. Returns whether the folder is no longer
        needed."""
        if self._trace is None:
            return True
        if not traces:
            self._say_nothing("--trace")
        try:
            for number, (device, recorded) in enumerate(traces.items()):
                to = self._trace if number == 0 else beside(self._trace, device)
                _copy(recorded, to)
                if len(traces) > 1:
                    _report.say(f"cistern.torch: the trace of cuda:{device} is {to}")
        except OSError as reason:
            _report.say(f"cistern.torch: --trace: {reason}")
            return False
        return True

    def _draw(self, traces: Dict[int, Path]) -> bool:
        """As _keep(), for the page."""
        if self._page is None:
            return True
        if not traces:
            self._say_nothing("--report")
            return True
        try:
            with warnings.catch_warnings(record=True) as notes:
                warnings.simplefilter("always")
                report(_source(self._folder, list(traces.values())), self._page)
        except (CisternError, OSError) as reason:
            _report.say(f"cistern.torch: --report: {reason}")
            return False
        for note in notes:
            _report.say(f"cistern.torch: --report: {note.message}")
        _report.say(f"cistern.torch: the report is {self._page}")
        return True

    def _say_nothing(self, option: str) -> None:
        self._is_missing = True
        _report.say(f"cistern.torch: {option}: nothing was recorded, and no file is written: the script allocated "
                    "no GPU memory through PyTorch")


def _source(folder: Path, traces: List[Path]) -> Path:
    """A folder stands for the GPUs of one run: two files would be compared."""
    return traces[0] if len(traces) == 1 else folder


def beside(wanted: str, device: int) -> str:
    """For a GPU that is not the first that was used, t.trace.gz becomes t.cuda1.trace.gz."""
    plain, packed = (wanted[:-3], ".gz") if wanted.endswith(".gz") else (wanted, "")
    stem, suffix = os.path.splitext(plain)
    return f"{stem}.cuda{device}{suffix}{packed}"


def _of_rank(wanted: Optional[str]) -> Optional[str]:
    """Of several processes that torchrun has begun, each has a page: p.html becomes p.rank1.html."""
    if wanted is None or _report.rank() is None:
        return wanted
    stem, suffix = os.path.splitext(wanted)
    return f"{stem}.rank{_report.rank()}{suffix}"


def _place(option: str, wanted: Optional[str]) -> Optional[str]:
    """The path from the root, as the script may go to another folder."""
    if wanted is None:
        return None
    path = os.path.join(os.getcwd(), wanted)
    try:
        _check_writable(path)
    except OSError as reason:
        raise OSError(f"{option}: {reason}") from None
    return path


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
