"""Run by a Python that has a PyTorch: builds what the tests need into a folder, and writes report.json there.

prepare.py FOLDER    the fake runtime (libcuda.so.1), direct.so, and, as cistern.torch does it, the extension"""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WARNINGS = ["-Wall", "-Wextra"]
# All functions but those of the compiler's own headers tell probe.cpp that they were entered. libc.so.6 has hooks of
# the same names, which would stand in front.
PROBED = ["-finstrument-functions", "-finstrument-functions-exclude-file-list=/usr/", "-Wl,-Bsymbolic-functions"]

# Keeps what the compiler said.
COMPILER = """#!/bin/sh
g++ {flags} "$@" {probe} 2>{log}
status=$?
cat {log} >&2
exit $status
"""


def compile_library(command, sources, made, *more):
    options = command[1:]
    subprocess.run([command[0], *(each for each in options if each[:2] != "-l"), "-w", *more, *map(str, sources),
                    *(each for each in options if each[:2] == "-l"), "-o", str(made)], check=True)


def prepare(folder):
    """The report; what the compiler says of a failure goes to the standard error."""
    import torch

    from cistern.torch import _build, _cached

    report = {"release": torch.__version__.split("+")[0], "cuda": torch.version.cuda}
    command = _build.command_line()
    compile_library(command, sorted((HERE / "fake_runtime").glob("*.cpp")), folder / "libcuda.so.1",
                    "-Wl,-soname,libcuda.so.1", f"-I{HERE / 'fake_runtime'}")
    compile_library(command, [HERE / "direct.cpp"], folder / "direct.so")

    log, compiler = folder / "compiler.log", folder / "compiler.sh"
    log.write_text("", encoding="utf-8")
    compiler.write_text(COMPILER.format(flags=" ".join(WARNINGS + PROBED), probe=HERE / "probe.cpp", log=log),
                        encoding="utf-8")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    os.environ.update(CXX=str(compiler), CISTERN_CACHE=str(folder / "cache"))
    _cached.load()
    said = log.read_text(encoding="utf-8").splitlines()
    report["warnings"] = [line for line in said if "warning:" in line and "/interop/" in line]
    return report


if __name__ == "__main__":
    into = Path(sys.argv[1])
    made_report = prepare(into)
    (into / "report.json").write_text(json.dumps(made_report), encoding="utf-8")
