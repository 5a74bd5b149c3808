"""Runs a script as `python script.py` does, or a module as `python -m` does: the same arguments, paths and
`__main__`.

`runpy.run_path` is not enough. Its `__main__` is gone when the script's last line has run, but
threads and exit handlers of the script still need it.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import pkgutil
import runpy
import sys
import types
from typing import List, Tuple, cast


def run(script: str, arguments: List[str]) -> None:
    sys.argv = [script, *arguments]
    packed = pkgutil.get_importer(script) is not None  # a folder or an archive with a __main__.py
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        own = os.path.abspath(script) if packed else os.path.dirname(os.path.realpath(script))
        sys.path.insert(0, own)
    if packed:
        _run_as_main("__main__", False)
    else:
        # Not abspath: the folder before a ".." may be a link.
        _run_file(script if os.path.isabs(script) else os.path.join(os.getcwd(), script))


def run_module(name: str, arguments: List[str]) -> None:
    sys.argv = ["-m", *arguments]  # until the module is found, and its file takes the place of -m
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path.insert(0, os.getcwd())
    _run_as_main(name, True)


def _run_as_main(name: str, sets_argv: bool) -> None:
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    runpy._run_module_as_main(name, sets_argv)  # type: ignore[attr-defined]  # as python does


def _run_file(path: str) -> None:
    module = types.ModuleType("__main__")
    loader, code = _read(path)
    module.__dict__.update(__file__=path, __cached__=None, __loader__=loader, __builtins__=builtins)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _read(path: str) -> Tuple[object, types.CodeType]:
    if path.endswith(".pyc"):
        compiled = importlib.machinery.SourcelessFileLoader("__main__", path)
        return compiled, cast(types.CodeType, compiled.get_code("__main__"))
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    return loader, loader.source_to_code(loader.get_data(path), path)
