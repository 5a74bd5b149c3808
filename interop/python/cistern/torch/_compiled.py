"""The extensions that a wheel has compiled ahead: cistern/torch/_compiled.

PyTorch's allocator interface is made of C++ classes, so an extension serves the headers that it was compiled
with. table.json names, for each release, these headers, and the extension for their digest. The installed
PyTorch has the same headers, or is not served. Reading them takes some milliseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Optional

from .. import _places
from . import _digest


def find() -> Optional[Path]:
    """The extension for the installed PyTorch, or None. A package that was not built as a wheel for
    PyPI has none. With CISTERN_ROOT, the checkout's sources are compiled."""
    import torch

    folder = _places.compiled_extensions()
    if folder is None or not torch.compiled_with_cxx11_abi():
        return None
    try:
        table = json.loads((folder / "table.json").read_bytes())
        release = table[".".join(torch.__version__.split(".")[:2])]
        digest = _digest.of_files(Path(torch.__file__).parent / "include", release["headers"])
        return folder / str(release["digests"][digest])
    except (OSError, KeyError):  # no headers, another release, other headers
        return None
