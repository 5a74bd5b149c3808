"""A PyTorch that is newer than the newest known one. Its interface may have changed in ways that
compile all the same. So the compiled extension is tested before it is used: in a process of its
own, where a crash or a hang is only a failed test. The result is remembered beside the extension.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

from . import _build, _private

_SCRIPT = Path(__file__).with_name("_self_test.py")
_PATIENCE = 120.0  # seconds
_PASSED = "passed"
_TO_CALLER_OF_ENABLE = 8  # frames between a warning here and the line that calls enable()


def check(extension: Path, release: str, known: str) -> None:
    """Tests the extension, unless it was tested before. Warns once that this is a later release.
    BuildError if the test fails."""
    path = extension.with_suffix(".tested")
    result = path.read_text(encoding="utf-8") if _private.is_kept(path) else ""
    if not result:
        result = _test(extension)
        _keep(path, result)
        if result == _PASSED:
            warnings.warn(
                f"cistern.torch: PyTorch {release} is later than the releases that this was written for ({known}); "
                "the extension compiles and passes its own test, so it is used",
                stacklevel=_TO_CALLER_OF_ENABLE,
            )
    if result != _PASSED:
        raise _build.BuildError(f"the extension compiles, but fails its own test: {result}\n"
                                f"{path} has this result; remove it to test again")


def _test(extension: Path) -> str:
    """`_PASSED`, or why not."""
    environment = {**os.environ, "CISTERN_BACKEND": "sim", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for name in ("CISTERN_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"):
        environment.pop(name, None)
    try:
        with _build.said_if_long("testing the extension with this PyTorch, which is newer than any that is known"):
            ran = subprocess.run(
                [sys.executable, str(_SCRIPT), str(extension)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                env=environment,
                timeout=_PATIENCE,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return f"it has not ended after {_PATIENCE:g} seconds"
    except OSError as failure:
        return f"it cannot be run: {failure}"
    if ran.returncode == 0:
        return _PASSED
    if ran.returncode < 0:
        return f"it was ended by {signal.Signals(-ran.returncode).name}"
    return ran.stdout.strip() or f"it ended with {ran.returncode}"


# Whole or not at all, because other processes may read it meanwhile.
def _keep(path: Path, result: str) -> None:
    begun = path.with_suffix(f".{os.getpid()}")
    begun.write_text(result, encoding="utf-8")
    begun.chmod(0o644)  # whatever the umask
    begun.replace(path)
