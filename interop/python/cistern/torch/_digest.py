"""The digest of a set of headers. It says for which PyTorch an extension was compiled. The build of the
wheel uses it too, so it imports nothing of the package."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Iterable


def of_files(folder: Path, names: Iterable[str]) -> str:
    """The SHA-256 of names and contents. OSError if a file is missing."""
    whole = hashlib.sha256()
    for name in names:
        content = (folder / name).read_bytes()
        whole.update(f"{name}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()
