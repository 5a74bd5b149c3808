"""The extension: compiled ahead in the wheel (`_compiled.py`), or else compiled here once, and kept.

The extension that is compiled here stays in $CISTERN_CACHE, or ~/.cache/cistern. Its name says what
it was made of, so another PyTorch, compiler or Cistern gives another file. Several processes may
build at once: the last one's file replaces the others' as a whole. Nobody else may write there,
because the files there are run: `_private.py`. Every failure is a BuildError.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from pathlib import Path
from typing import Callable, Tuple

from . import _build, _compiled, _private


def load(check: Callable[[Path], None] = lambda path: None) -> ctypes.CDLL:
    """The extension. It is made if it is missing, and made once anew if the existing file does not
    load. `check` comes before one that was compiled here is loaded, and may refuse it by a BuildError."""
    ahead = _compiled.find()
    if ahead is not None:
        with contextlib.suppress(OSError):  # a PyTorch that lacks a name, though its headers have it
            return ctypes.CDLL(str(ahead))
    path, made = _extension()
    _checked(check, path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as failure:
        if made or _is_noexec(path):
            raise _not_loaded(path, failure) from None
    path, _ = _extension(anew=True)
    _checked(check, path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as failure:
        raise _not_loaded(path, failure) from None


def _checked(check: Callable[[Path], None], path: Path) -> None:
    try:
        check(path)
    except OSError as failure:
        raise _build.BuildError(f"{failure}\n{_elsewhere(path.parent)}") from None


def _extension(anew: bool = False) -> Tuple[Path, bool]:
    """Its path, and whether it was made now."""
    kept_in = folder()
    try:
        with _build.said_if_long("loading PyTorch, and looking for its headers; it takes some seconds"):
            command = _build.command_line()
            path = _private.make_folder(kept_in) / f"cistern_torch-{_build.digest(command)}.so"
        make = anew or not _private.is_kept(path) or _is_torn(path)
        if make:
            _build.compile_to(command, path)
        return path, make
    except ImportError as missing:  # a package without its sources
        raise _build.BuildError(str(missing)) from None
    except (OSError, _private.NotPrivate) as failure:
        raise _build.BuildError(f"{failure}\n{_elsewhere(kept_in)}") from None


# The loader maps a file by what its head says. A process that touches a page beyond the end is killed.
def _is_torn(path: Path) -> bool:
    """Whether it is an ELF file that ends before its section headers, which a linker writes last."""
    with path.open("rb") as library:
        head = library.read(64)
        size = os.fstat(library.fileno()).st_size
    if len(head) < 64 or head[:5] != b"\x7fELF\2":  # of 64 bits
        return False
    (begin,), (each, count) = struct.unpack_from("=Q", head, 40), struct.unpack_from("=HH", head, 58)
    return bool(begin + each * count > size)


def _not_loaded(path: Path, failure: OSError) -> _build.BuildError:
    why = "\nits folder is mounted noexec" if _is_noexec(path) else ""
    return _build.BuildError(f"what was compiled does not load: {failure}{why}\n{_elsewhere(path.parent)}")


def _is_noexec(path: Path) -> bool:
    return bool(os.statvfs(path.parent).f_flag & os.ST_NOEXEC)


def _elsewhere(kept_in: Path) -> str:
    return f"what is compiled is kept in {kept_in}; CISTERN_CACHE names another folder"


def folder() -> Path:
    """The folder that keeps it, which need not be there yet. BuildError if there is no home folder."""
    named = os.environ.get("CISTERN_CACHE")
    if named:
        return Path(named).absolute()
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        # A relative one is to be ignored, says the XDG Base Directory Specification.
        return (Path(home) if os.path.isabs(home) else _private.home() / ".cache") / "cistern"
    except RuntimeError:
        raise _build.BuildError(
            "there is no home folder to keep what is compiled in; set CISTERN_CACHE to a folder"
        ) from None
