"""Processes that `multiprocessing` starts anew ("spawn", "forkserver") run on Cistern like their
parent. A CUDA tensor can be passed between two processes only if both run on Cistern.

Such a child reads data from its parent before it runs any code of the program. `follow()` adds an
object to that data. When the child reads the object, it runs `_child.py`, which calls `begin()`.
Children of fork need nothing.
"""

from __future__ import annotations

import multiprocessing.spawn
import os
import runpy
from pathlib import Path
from typing import Any, Dict, List, Tuple

from . import _report, enable, enabled
from ._enable import Mode


class _Begin:
    """Unpickled, it is the call that enables Cistern. It holds a path and not a function's name:
    when the child reads it, its sys.path is not yet the parent's."""

    def __init__(self, paths: List[str]) -> None:
        self._given = {"PATHS": paths, "MODE": enabled()}

    def __reduce__(self) -> Tuple[Any, ...]:
        program = str(Path(__file__).resolve().with_name("_child.py"))
        return runpy.run_path, (program, self._given)


def follow() -> None:
    """From now on this process's children run on Cistern."""
    theirs = multiprocessing.spawn.get_preparation_data

    def with_cistern(name: str) -> Dict[str, Any]:
        data = theirs(name)
        return {"cistern.torch": _Begin(data["sys_path"]), **data}

    multiprocessing.spawn.get_preparation_data = with_cistern


def begin(mode: Mode) -> None:
    """Called in a child, with its parent's mode. A child that cannot run on Cistern runs as it would have without it."""
    try:
        enable(mode)
    except ModuleNotFoundError:
        return
    except Exception as reason:
        _report.say(f"cistern.torch: process {os.getpid()} is not on Cistern: {reason}")
        return
    follow()
