"""Another distribution of the import name `cistern`, in the same folder as this one.

PyPI's `cistern` is a client for torrents. It installs `cistern/__init__.py` too. pip lets the later
one of the two replace that file, and removes it with either of them. The folder's names tell which
distributions are there. Reading their metadata would cost more than the whole import.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import List

#: As pip knows this package.
NAME = "cistern-gpu"
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_SITE = os.path.dirname(_PACKAGE)


def installed(name: str) -> List[str]:
    """The distributions of that name beside this package, as "cistern-gpu 0.1.0"."""
    try:
        entries = os.listdir(_SITE)
    except OSError:
        return []
    start = name.replace("-", "_") + "-"  # as in "cistern_gpu-0.1.0.dist-info", "cistern-0.1.5-py3.11.egg-info"
    folders = [os.path.splitext(entry)[0] for entry in entries
               if entry.startswith(start) and entry.endswith((".dist-info", ".egg-info"))]
    return sorted(f"{name} {folder.split('-')[1]}" for folder in folders)


def warn_of_others() -> None:
    """Warns if files of another distribution are in this package's folder."""
    others = installed("cistern")
    if others:
        warnings.warn(_text(others), stacklevel=3)


def check() -> None:
    """ImportError if the package's __init__.py is not ours, which imports warn_of_others() first.
    Another distribution has replaced or removed it. `cistern.torch` and others are here still."""
    if not hasattr(sys.modules["cistern"], "_warn_of_others"):
        raise ImportError(_text(installed("cistern")), name="cistern")


def _text(others: List[str]) -> str:
    if not others:
        return (f"cistern: {_PACKAGE}/__init__.py is missing or is not that of {NAME}. A distribution of the same "
                f"import name was installed there. To mend it: pip uninstall {NAME}, then install it again")
    own = (installed(NAME) or [NAME])[0]
    return (f"cistern: {_PACKAGE} has files of two distributions: {own}, the memory allocator, and "
            f"{', '.join(others)}, another program of the same import name. The later one has replaced files of the "
            f"other. To mend it: pip uninstall cistern {NAME}, then install the one that is wanted. The other needs "
            "a virtual environment of its own.")
