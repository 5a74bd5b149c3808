"""What `python -m cistern info` says: what of Cistern is installed, where it is, and what it finds here."""

from __future__ import annotations

import argparse
import errno
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import signal
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from . import _distributions, _places
from .errors import CisternError, InvalidArgumentError, NotSupportedError
from .torch import _build, _cached, _compiled, _native

#: The kernel's module and the libraries of each vendor. The process has loaded those that it uses.
_VENDORS = {"cuda": ("nvidia", r"libcudart[\w.-]*\.so|libcuda\.so"),
            "hip": ("amdgpu", r"libamdhip64\.so|libhsa-runtime64\.so")}


def main(arguments: List[str], problem: Optional[str] = None) -> int:
    """The command `info`. `problem` is why the library cannot be loaded; the status is then 1."""
    parser = argparse.ArgumentParser(prog="cistern info", description="Says what of Cistern is installed, where it "
                                     "is, and what it finds on this machine.", allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="the same as one JSON object (docs/python.md)")
    wanted = parser.parse_args(arguments)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads may stop
    try:
        all_ = gather(problem)
    except InvalidArgumentError as wrong:
        parser.exit(2, f"cistern: {wrong}\n")
    try:
        _write((json.dumps(all_, indent=2) if wanted.json else as_text(all_)) + "\n")
    except OSError as failure:
        parser.exit(1, f"cistern: the output cannot be written: {failure.strerror}\n")
    return 0 if problem is None else 1


def _write(text: str) -> None:
    """To the standard output at once: Python would report a failed flush at its end. OSError."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    rest = text.encode(sys.stdout.encoding, "backslashreplace")
    while rest:
        rest = rest[os.write(1, rest):]


def gather(problem: Optional[str] = None) -> Dict[str, Any]:
    """All of it, as --json prints it. docs/python.md lists the keys. InvalidArgumentError if
    $CISTERN_BACKEND names no backend. With a problem nothing calls the library."""
    return {
        "version": _version() if problem is None else None,
        "problem": problem,
        "distribution": next(iter(_distributions.installed(_distributions.NAME)), None),
        "conflicts": _distributions.installed("cistern"),
        "python": {"version": platform.python_version(), "program": sys.executable},
        "backends": [_backend(name) for name in _backend_names()] if problem is None else [],
        "torch": _torch(),
        "files": _files(),
        "cache": _cache(),
    }


def _version() -> str:
    from . import __version__

    return __version__


def _backend_names() -> Sequence[str]:
    """What $CISTERN_BACKEND names, else each vendor's."""
    from . import Allocator

    named = os.environ.get("CISTERN_BACKEND") or "auto"
    if named == "auto":
        return tuple(_VENDORS)
    try:
        Allocator("auto").destroy()
    except InvalidArgumentError:
        raise
    except CisternError:
        pass  # there is no such device here, which is said of it below
    return (named,)


def _backend(name: str) -> Dict[str, Any]:
    from . import Allocator

    devices: List[Dict[str, int]] = []
    problem: Optional[CisternError] = None
    while problem is None:
        try:
            with Allocator(name, len(devices)) as allocator:
                free, total = allocator.memory_info()
            devices.append({"ordinal": len(devices), "total_bytes": total, "free_bytes": free})
        except CisternError as error:
            problem = error
    module, libraries = _VENDORS.get(name, ("", ""))
    return {
        "name": name,
        "compiled_in": bool(devices) or not isinstance(problem, NotSupportedError),
        "driver": _first_line(f"/sys/module/{module}/version") if module else None,
        "libraries": list(_loaded(libraries)) if libraries else [],
        "devices": devices,
        "problem": None if devices else str(problem),
    }


def _first_line(path: str) -> Optional[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").partition("\n")[0] or None
    except OSError:
        return None


def _loaded(pattern: str) -> Iterator[str]:
    """The files of this process's libraries whose name begins so."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        names = {line[line.index("/"):].rstrip("\n") for line in maps if "/" in line}
    return (name for name in sorted(names) if re.match(pattern, os.path.basename(name)))


def _torch() -> Dict[str, Any]:
    """PyTorch is not imported: that takes seconds."""
    version: Optional[str] = None
    extension: Optional[Path] = None
    releases: List[str] = []
    problem: Optional[str] = None
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin is not None:
        try:
            version = importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            version = "unknown"
    try:
        releases = _compiled.releases()
        if spec is not None and spec.origin is not None and version is not None:
            extension = _compiled.find_for(version, Path(spec.origin).parent)
    except _compiled.Damaged as damaged:
        problem = str(damaged)
    return {
        "version": version,
        "oldest": "{}.{}".format(*_native.OLDEST),
        "newest": "{}.{}".format(*_native.NEWEST),
        "compiled_ahead": releases,
        "extension": None if extension is None else str(extension),
        "problem": problem,
    }


def _files() -> Dict[str, Optional[str]]:
    """Each kind's place; None if it is missing."""
    found: Dict[str, Optional[str]] = {"package": str(Path(__file__).parent)}
    for name, place in (("library", _places.library), ("command", _places.command), ("preload", _places.preload),
                        ("headers", _places.include), ("sources", _places.torch_sources)):
        try:
            path = place()
        except ImportError:
            path = None
        found[name] = None if path is None else str(path)
    return found


def _cache() -> Dict[str, Any]:
    """The folder of what `cistern.torch` compiles on this machine."""
    try:
        folder = _cached.folder()
    except _build.BuildError as no_home:
        return {"folder": None, "files": 0, "bytes": 0, "problem": str(no_home)}
    kept = [path.stat().st_size for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    return {"folder": str(folder), "files": len(kept), "bytes": sum(kept), "problem": None}


# ---- As text ---------------------------------------------------------------------------------------


def as_text(all_: Dict[str, Any]) -> str:
    rows = [("Python", f"{all_['python']['version']} ({all_['python']['program']})"),
            ("installed as", all_["distribution"] or "no distribution: a checkout, or a folder of PYTHONPATH")]
    rows += [("conflict", f"{name} has written into the same folder") for name in all_["conflicts"]]
    for backend in all_["backends"]:
        rows += _backend_rows(backend)
    rows += [("PyTorch", line) for line in _torch_lines(all_["torch"])]
    rows += [(name, path or "none") for name, path in all_["files"].items()]
    rows.append(("cache", _cache_line(all_["cache"])))
    head = f"Cistern {all_['version']}" if all_["problem"] is None else all_["problem"]
    return "\n".join([head, *(f"{name}: {text}" for name, text in rows)])


def _backend_rows(backend: Dict[str, Any]) -> Iterator[Tuple[str, str]]:
    name = backend["name"]
    if backend["problem"] is not None:
        yield name, backend["problem"]
    for device in backend["devices"]:
        total, free = device["total_bytes"] / 2**30, device["free_bytes"] / 2**30
        yield f"{name} device {device['ordinal']}", f"{total:.1f} GiB, {free:.1f} GiB free"
    if backend["driver"] is not None:
        yield f"{name} driver", backend["driver"]
    for path in backend["libraries"]:
        yield f"{name} library", path


def _torch_lines(torch: Dict[str, Any]) -> Iterator[str]:
    yield torch["version"] or "not installed for this Python"
    yield f"the native allocator is for {torch['oldest']} to {torch['newest']}"
    yield f"extensions compiled ahead: {', '.join(torch['compiled_ahead']) or 'none'}"
    if torch["problem"] is not None:
        yield torch["problem"]
    if torch["version"] is not None:
        yield f"its extension: {torch['extension'] or 'compiled on this machine, at the first use'}"


def _cache_line(cache: Dict[str, Any]) -> str:
    if cache["problem"] is not None:
        return str(cache["problem"])
    return f"{cache['folder']} ({cache['files']} files, {cache['bytes'] / 2**20:.1f} MiB)"
