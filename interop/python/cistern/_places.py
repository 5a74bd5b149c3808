"""The places of Cistern's files: the library, the command, and the sources that `cistern.torch`
compiles.

Each is looked for in $CISTERN_ROOT, a source checkout with a build in build/release. If that is not
set, each is looked for in two places, in this order:

- the installed package;
- the checkout that this file lies in.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterable, List, Optional

from . import _distributions

_distributions.check()

_PACKAGE = Path(__file__).resolve().parent
#: Absolute: the program may go to another folder before the command is looked for.
_ROOT = os.path.abspath(os.environ["CISTERN_ROOT"]) if os.environ.get("CISTERN_ROOT") else None
_BUILT_COMMAND = "build/release/interop/command/cistern"


def _candidates(in_checkout: str, in_package: str) -> List[Path]:
    if _ROOT is not None:  # another build would not be the one that is asked for
        return [Path(_ROOT) / in_checkout]
    places = [_PACKAGE / in_package]
    if (_PACKAGE.parents[2] / "interop/python/cistern/_places.py").is_file():  # of a checkout
        places.append(_PACKAGE.parents[2] / in_checkout)
    return places


def _first(candidates: Iterable[Path]) -> Optional[Path]:
    return next((place for place in candidates if place.exists()), None)


def _required(what: str, in_checkout: str, in_package: str) -> Path:
    candidates = _candidates(in_checkout, in_package)
    found = _first(candidates)
    if found is None:
        looked = "".join(f"\n  {place}" for place in candidates)
        if _ROOT is not None:
            raise ImportError(f"cistern: CISTERN_ROOT is {_ROOT!r}, and {what} is not there; looked for:{looked}\n"
                              "It must be a checkout with a build (./dev build), or not be set.")
        raise ImportError(
            f"cistern: {what} is not found; looked for:{looked}\n"
            "Install the package (./dev wheel makes its wheel), or build a checkout "
            "(./dev build) and set CISTERN_ROOT to it."
        )
    return found


def library() -> Path:
    """libcistern.so.0. If it is missing, ImportError names the places that were searched."""
    return _required("libcistern.so.0", "build/release/libcistern.so.0", "_lib/libcistern.so.0")


def command_candidates() -> List[Path]:
    """The places where command() looks, in its order."""
    return _candidates(_BUILT_COMMAND, "_bin/cistern")


def command() -> Optional[Path]:
    """The program `cistern`, or None if it is missing. A wheel that was built without CLI11,
    nlohmann_json or zlib has no such program."""
    return _first(command_candidates())


def preload() -> Optional[Path]:
    """libcistern_preload.so, which `cistern run` puts before a program, or None if it is missing. A
    wheel that was built without CUDA and HIP has no such file."""
    return _first(_candidates("build/release/interop/preload/libcistern_preload.so", "_bin/libcistern_preload.so"))


def include() -> Path:
    """The folder with cistern/cistern.hpp and cistern/cistern.h. ImportError if it is missing."""
    return _required("the folder of headers", "include", "_sources/include")


def torch_sources() -> Path:
    """The folder of the C++ sources of `cistern.torch`. `sharing`, which they need, is beside it.
    ImportError if it is missing."""
    return _required("the folder of sources for PyTorch", "interop/torch", "_sources/interop/torch")


def compiled_extensions() -> Optional[Path]:
    """The folder of the extensions for PyTorch that a wheel has compiled ahead, or None."""
    folder = _PACKAGE / "torch/_compiled"
    return folder if _ROOT is None and folder.is_dir() else None
