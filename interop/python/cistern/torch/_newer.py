"""A PyTorch that is newer than the newest known one. Its interface may have changed in ways that
compile all the same. So the compiled extension is tested before it is used: in a process of its
own, where a crash or a hang is only a failed test. A pass, or an answer that differs, is remembered
beside the extension. Any other end may be the machine's fault, so the next use tests again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Tuple

from . import _build, _private

_SCRIPT = Path(__file__).with_name("_self_test.py")
_PATIENCE = 120.0  # seconds
_PASSED = "passed"
_DIFFERS = 10  # the exit status of _self_test.py for an answer that differs
_TO_CALLER_OF_ENABLE = 8  # frames between a warning here and the line that calls enable()


def check(extension: Path, release: str, known: str) -> None:
    """Tests the extension, unless it was tested before. Warns once that this is a later release.
    BuildError if the test fails."""
    path = extension.with_suffix(".tested")
    result, decided = _kept(path), True
    if not result:
        result, decided = _test(extension)
        if decided:
            _keep(path, result)
        if result == _PASSED:
            warnings.warn(
                f"cistern.torch: PyTorch {release} is later than the releases that this was written for ({known}); "
                "the extension compiles and passes its own test, so it is used",
                stacklevel=_TO_CALLER_OF_ENABLE,
            )
    if not decided:
        raise _build.BuildError(f"the extension compiles, but cannot be tested here: {result}; "
                                "the next use tests it again")
    if result != _PASSED:
        raise _build.BuildError(f"the extension compiles, but fails its own test: {result}\n"
                                f"{path} has this result; remove it to test again")


def _kept(path: Path) -> str:
    """The result of an earlier test, or "" if there is none that can be read."""
    if not _private.is_kept(path):
        return ""
    try:
        return path.read_bytes().decode().strip()
    except UnicodeDecodeError:
        return ""


def _test(extension: Path) -> Tuple[str, bool]:
    """`_PASSED`, or why not in one line; and whether the test itself has decided that."""
    environment = {**os.environ, "CISTERN_BACKEND": "sim", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for name in ("CISTERN_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"):
        environment.pop(name, None)
    try:
        with _build.said_if_long("testing the extension with this PyTorch, which is newer than any that is known"):
            ran = subprocess.run(
                [sys.executable, str(_SCRIPT), str(extension)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env=environment,
                timeout=_PATIENCE,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return f"the test has not ended after {_PATIENCE:g} seconds", False
    except OSError as failure:
        return f"the test cannot be run: {failure}", False
    if ran.returncode == 0:
        return _PASSED, True
    if ran.returncode < 0:
        return f"the test was ended by {_signal(-ran.returncode)}", False
    lines = ran.stdout.split("\n") if ran.stdout.strip() else ran.stderr.split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), f"the test ended with {ran.returncode}")
    return last, ran.returncode == _DIFFERS


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time one
        return f"signal {number}"


# Whole or not at all, because other processes may read it meanwhile.
def _keep(path: Path, result: str) -> None:
    begun = path.with_suffix(f".{os.getpid()}")
    begun.write_text(result, encoding="utf-8")
    begun.chmod(0o644)  # whatever the umask
    begun.replace(path)
