"""The history of an allocator: recorded, written to files, and drawn by `cistern report`."""

from __future__ import annotations

import ctypes
import json
from typing import Dict, NamedTuple, Optional, SupportsIndex, Union

from . import _arguments
from ._arguments import PathLike
from ._native import HistorySettings, StackGathererStruct, check, lib, written
from ._owned import Scoped
from .errors import InvalidArgumentError


class LabelUsage(NamedTuple):
    """The bytes of the blocks of a label, those of labels inside it included: now, and the most since the
    recording began."""

    current: int
    peak: int


class Recorded(Scoped):
    """The part of an Allocator that records what it does. Its methods raise InvalidHandleError after the
    allocator's destroy(), and InvalidStateError in a child of fork."""

    def record_history(self, file: Optional[PathLike] = None, *, most_events: SupportsIndex = 1_000_000,
                       stacks: Union[bool, str] = True, name: str = "") -> None:
        """Records from now on each allocation and free of all threads, with the label and the lines of
        Python that it came from. One that is recorded already ends first.

        `file`: all events go there, in the background. Without it the newest `most_events` are kept in
        memory, 48 bytes each. `stacks`: True or "python", lines of Python, or the functions of C++ of a
        thread that runs no Python; False, none; "c++", functions of C++ alone. `name`: the program's, for the report. InvalidArgumentError for other
        values; FileError if the file cannot be written. The history is off then.
        """
        settings = HistorySettings(size=ctypes.sizeof(HistorySettings),
                                   most_events=_arguments.whole(most_events, "most_events", least=1),
                                   name=_arguments.text(name, "name"))
        if file is not None:
            settings.file = _arguments.path(file, "file")
        gatherer = _gatherer(stacks)
        settings.stacks = gatherer is not None
        if gatherer is not None and gatherer.size != 0:
            settings.gatherer = ctypes.pointer(gatherer)
        check(lib.cistern_record_history(self._owned.value, ctypes.byref(settings)))

    def stop_history(self) -> None:
        """Ends the recording, and its file. Events in memory are forgotten. FileError if the file is not
        whole; the recording has ended all the same."""
        check(lib.cistern_stop_history(self._owned.value))

    def dump_history(self, path: PathLike) -> None:
        """Writes the events in memory to the file `path`, after what there was before them; without a
        history, what there is now. report() draws it, and replay() reads it. FileError."""
        check(lib.cistern_dump_history(self._owned.value, _arguments.path(path, "path")))

    def mark(self, name: str) -> None:
        """Gives this moment of the history a `name`, such as a step of training."""
        check(lib.cistern_mark(self._owned.value, _arguments.text(name, "name")))

    def label_usage(self) -> Dict[str, LabelUsage]:
        """The bytes of each label since the recording began, by its name with those around it: "step /
        forward". Empty without a history."""
        rows = json.loads(written(lib.cistern_label_usage, self._owned.value))
        return {row["name"]: LabelUsage(row["current"], row["peak"]) for row in rows}


def mark(name: str) -> None:
    """Gives this moment a `name` in the histories of the allocators that the process shares, default()
    and PyTorch's, on all devices. InvalidArgumentError for a name with a null character."""
    check(lib.cistern_mark(None, _arguments.text(name, "name")))


def _gatherer(stacks: Union[bool, str]) -> Optional[StackGathererStruct]:
    """None for no stacks; one of size 0 for those of C++."""
    if not isinstance(stacks, (bool, str)):
        raise TypeError(f"stacks must be a bool or a str, not {type(stacks).__name__}")
    if stacks not in (True, False, "python", "c++"):
        raise InvalidArgumentError(f"stacks is {stacks!r}: must be True, False, 'python' or 'c++'")
    gatherer = StackGathererStruct()
    if stacks in (True, "python"):
        check(lib.cistern_python_stacks(ctypes.byref(gatherer)))
    return gatherer if stacks else None
