"""The extensions that a wheel has compiled ahead: cistern/torch/_compiled.

PyTorch's allocator interface is made of C++ classes, so an extension serves the headers that it was compiled
with. table.json names these headers for each release, and the extension for their digest, with its size. The
installed PyTorch has the same headers, or is not served. Reading them takes some milliseconds.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, Dict, List, Optional, cast

from .. import _places
from . import _digest

_MEND = "to mend it, install the package again"


class Damaged(Exception):
    """A file of the package is missing, or is not as the wheel has it. The text names it."""


def releases() -> List[str]:
    """The releases of PyTorch that the package has an extension for, as "2.11". Damaged."""
    folder = _places.compiled_extensions()
    return [] if folder is None else list(_table(folder))


def find() -> Optional[Path]:
    """The extension for the installed PyTorch, or None. A package that was not built as a wheel for
    PyPI has none. With CISTERN_ROOT, the checkout's sources are compiled. Warns if a file is damaged."""
    import torch

    if not torch.compiled_with_cxx11_abi():
        return None
    try:
        return find_for(torch.__version__, Path(torch.__file__).parent)
    except Damaged as damaged:
        warnings.warn(f"cistern.torch: no extension that was compiled ahead is used: {damaged}", stacklevel=2)
        return None


def find_for(version: str, torch: Path) -> Optional[Path]:
    """The extension for the PyTorch of that version in the folder `torch`, or None. PyTorch is not
    imported. Damaged."""
    folder = _places.compiled_extensions()
    release = None if folder is None else _table(folder).get(".".join(version.split(".")[:2]))
    if folder is None or release is None:
        return None
    try:
        made = release["digests"].get(_digest.of_files(torch / "include", release["headers"]))
    except OSError:  # no headers
        return None
    return None if made is None else _whole(folder / made["name"], made["bytes"])


# The loader maps a file by what its head says. A process that touches a page beyond the end is killed.
def _whole(path: Path, size: int) -> Path:
    try:
        found = path.stat().st_size if path.is_file() else -1
    except OSError as failure:
        raise Damaged(f"{path}: {failure.strerror}; {_MEND}") from None
    if found < 0:
        raise Damaged(f"{path} is missing; {_MEND}")
    if found != size:
        raise Damaged(f"{path} has {found} bytes, and was made with {size}; {_MEND}")
    return path


def _table(folder: Path) -> Dict[str, Any]:
    path = folder / "table.json"
    try:
        table = json.loads(path.read_bytes())
    except OSError as failure:
        raise Damaged(f"{path}: {failure.strerror}; {_MEND}") from None
    except ValueError as wrong:
        raise Damaged(f"{path} is damaged: {wrong}; {_MEND}") from None
    if not isinstance(table, dict) or not all(map(_is_release, table.values())):
        raise Damaged(f"{path} is damaged: it is not the table of a wheel; {_MEND}")
    return cast(Dict[str, Any], table)


def _is_release(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    headers, digests = value.get("headers"), value.get("digests")
    return (isinstance(headers, list) and all(isinstance(name, str) for name in headers)
            and isinstance(digests, dict) and all(map(_is_extension, digests.values())))


def _is_extension(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("bytes"), int)
