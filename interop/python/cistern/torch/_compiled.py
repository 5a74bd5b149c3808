"""The extensions that a wheel has compiled ahead: cistern/torch/_compiled.

PyTorch's allocator interface is made of C++ classes, so an extension serves the headers that it was compiled
with. table.json names, for each release, these headers, and the extension for their digest. The installed
PyTorch has the same headers, or is not served. Reading them takes some milliseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, cast

from .. import _places
from . import _digest


def releases() -> List[str]:
    """The releases of PyTorch that the package has an extension for, as "2.11"."""
    folder = _places.compiled_extensions()
    return [] if folder is None else list(_table(folder))


def find() -> Optional[Path]:
    """The extension for the installed PyTorch, or None. A package that was not built as a wheel for
    PyPI has none. With CISTERN_ROOT, the checkout's sources are compiled."""
    import torch

    return find_for(torch.__version__, Path(torch.__file__).parent) if torch.compiled_with_cxx11_abi() else None


def find_for(version: str, torch: Path) -> Optional[Path]:
    """The extension for the PyTorch of that version in the folder `torch`, or None. PyTorch is not
    imported."""
    folder = _places.compiled_extensions()
    if folder is None:
        return None
    try:
        release = _table(folder)[".".join(version.split(".")[:2])]
        digest = _digest.of_files(torch / "include", release["headers"])
        return folder / str(release["digests"][digest])
    except (OSError, KeyError):  # no headers, another release, other headers
        return None


def _table(folder: Path) -> Dict[str, Any]:
    return cast(Dict[str, Any], json.loads((folder / "table.json").read_bytes()))
