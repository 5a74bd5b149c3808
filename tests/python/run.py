"""Runs the tests of the Python package by a Python that has pytest: that of build/venv, this one, or the
system's. The first can build a wheel and check the types too.

run.py SOURCES FOLDER...    the checkout that has build/release, and the folders of tests

It fails where none has pytest: ./dev setup installs it."""

import os
import pathlib
import subprocess
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[2]
CANDIDATES = [str(SOURCES / "build/venv/bin/python"), sys.executable, "/usr/bin/python3"]


def has_pytest(python):
    try:
        return subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0
    except OSError:
        return False


if __name__ == "__main__":
    root, *folders = sys.argv[1:]
    python = next(filter(has_pytest, CANDIDATES), None)
    if python is None:
        sys.exit(f"none of {', '.join(CANDIDATES)} has pytest: ./dev setup installs it")
    os.environ.pop("CISTERN_CONF", None)  # the tests set options of their own
    os.environ.update(CISTERN_ROOT=root, PYTHONPATH=str(SOURCES / "interop/python"))
    # Files of its own: other runs of pytest on this machine tidy up the usual place.
    kept = pathlib.Path(root).parent / "files"
    os.execv(python, [python, "-B", "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider",
                      f"--basetemp={kept}", *folders])
