"""Compiles the extension against the PyTorch that is installed: no nvcc, no CUDA toolkit beyond the headers
that come with PyTorch. `_cached.py` says where it is kept."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Tuple

from .. import _places

_FLAGS = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-DNDEBUG"]


class BuildError(Exception):
    """The build failed. The text names what is missing, or has the compiler's output."""


_PATIENCE = 2.0  # seconds


@contextlib.contextmanager
def said_if_long(text: str) -> Iterator[None]:
    """If the block takes more than two seconds, a terminal on the standard error says what it is at."""
    if not os.isatty(2):
        yield
        return
    timer = threading.Timer(_PATIENCE, os.write, (2, f"cistern.torch: {text}\n".encode()))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _folders() -> List[Path]:
    own = _places.torch_sources()
    return [own, own.parent / "sharing"]


def _files(kind: str) -> List[Path]:
    return [path for folder in _folders() for path in sorted(folder.rglob(kind))]


def _sources() -> List[Path]:
    return _files("*.cpp")


def command_line() -> List[str]:
    import torch

    root = Path(torch.__file__).parent
    library = _places.library().resolve()
    folders = [
        root / "include",
        root / "include/torch/csrc/api/include",
        *_cuda_headers(torch.version.cuda),
        _places.include(),
        _places.torch_sources().parents[1],  # "interop/sharing/…"
    ]
    links = [root / "lib", library.parent]
    abi = int(torch.compiled_with_cxx11_abi())
    return [
        *_compiler(),
        *_FLAGS,
        f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
        *(f"-I{folder}" for folder in folders),
        *(f"-L{folder}" for folder in links),
        *(f"-Wl,-rpath,{folder}" for folder in links),
        "-lc10",
        "-lc10_cuda",
        "-ltorch_cpu",
        "-l:libcistern.so.0",
        "-ldl",  # where the C library does not have dladdr itself
        # The process's own runtime. A compiler may be set up to link its runtime statically, and
        # then this extension and PyTorch would each have one.
        "-l:libstdc++.so.6",
    ]


def _compiler() -> List[str]:
    """$CXX may have arguments: "ccache g++"."""
    try:
        named = shlex.split(os.environ.get("CXX", ""))
    except ValueError as failure:
        raise BuildError(f"$CXX, {os.environ['CXX']!r}, is no command: {failure}") from None
    if named:
        found = shutil.which(named[0])
        if found is None:
            raise BuildError(f"$CXX names {named[0]!r}, which is not found")
        return [found, *named[1:]]
    for name in ("c++", "g++", "clang++"):
        found = shutil.which(name)
        if found:
            return [found]
    raise BuildError("no C++ compiler is found (c++, g++ or clang++ on PATH, or $CXX)")


def _cuda_headers(version: Optional[str] = None) -> List[Path]:
    """The folder of cuda_runtime_api.h, and that of crt/host_config.h if it is another: pip's package of the
    runtime includes that header, and its package of nvcc has it. `version` is that of PyTorch's CUDA, as "13.0"."""
    folders = list(_cuda_folders(version))
    found: List[Path] = []
    for header, package in (("cuda_runtime_api.h", _RUNTIME), ("crt/host_config.h", _NVCC)):
        folder = next((each for each in found + folders if (each / header).is_file()), None)
        if folder is None:
            looked = ", ".join(map(str, folders))
            raise BuildError(f"{header} is not found: {_pip_line(package, version)}set CUDA_HOME; looked in {looked}")
        found.append(folder)
    return list(dict.fromkeys(found))


#: The packages of pip that have a header: that of CUDA 12, and that of later ones.
_RUNTIME = "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime"
_NVCC = "nvidia-cuda-nvcc-cu12", "nvidia-cuda-crt"


def _pip_line(packages: Tuple[str, str], version: Optional[str]) -> str:
    if version is None:  # PyTorch is without CUDA
        return ""
    package = packages[int(version.partition(".")[0]) >= 13]
    return f"`pip install '{package}=={version}.*'` brings it, or "


def _cuda_folders(version: Optional[str]) -> Iterable[Path]:
    """First those that come with PyTorch: a toolkit may be of another CUDA."""
    spec = importlib.util.find_spec("nvidia")
    packages = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    if version is not None:
        major = int(version.partition(".")[0])
        names = [f"cu{major}"] if major >= 13 else ["cuda_runtime", "cuda_nvcc"]
        yield from (folder / name / "include" for folder in packages for name in names)
    home = os.environ.get("CUDA_HOME")
    if home:
        yield Path(home) / "include"
    for folder in packages:
        yield from sorted(folder.glob("cu*/include"))
    nvcc: Optional[str] = shutil.which("nvcc")
    if nvcc:
        yield Path(nvcc).resolve().parents[1] / "include"
    yield Path("/usr/local/cuda/include")


def digest(command: List[str]) -> str:
    import torch

    made_of = hashlib.sha256()
    made_of.update(torch.__version__.encode())
    made_of.update(b"\0".join(map(os.fsencode, command)))
    library = _places.library().stat()
    made_of.update(f"{library.st_size} {library.st_mtime_ns}".encode())
    headers = _files("*.hpp") + sorted(_places.include().glob("cistern/*.hpp"))
    for path in _sources() + headers:
        made_of.update(path.read_bytes())
    return made_of.hexdigest()[:24]


def compile_to(command: List[str], made: Path) -> None:
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as scratch:
        # One file: PyTorch's headers are read once.
        whole = Path(scratch) / "cistern_torch.cpp"
        whole.write_bytes(b"".join(b'#include "%s"\n' % os.fsencode(path) for path in _sources()))
        out = Path(scratch) / "cistern_torch.so"
        # The libraries come after what needs them.
        options = next((i for i, each in enumerate(command) if each[0] == "-"), len(command))
        with said_if_long("compiling the extension for this PyTorch; it takes ten seconds or so, and is kept "
                          f"in {made.parent}"):
            ran = subprocess.run(
                [*command[:options], str(whole), *command[options:], "-o", str(out)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        if ran.returncode != 0:
            raise BuildError(f"{command[0]} ended with {ran.returncode}{_first_lines(ran.stdout)}")
        if not out.is_file():
            raise BuildError(f"the compiler {command[0]} said that all is well, and wrote nothing")
        out.chmod(0o755)  # whatever the umask
        out.replace(made)


# A note on a virtual function says which one a class lacks, or has in another form.
def _first_lines(output: str, most: int = 20) -> str:
    told = [line for line in output.splitlines() if "error" in line or ("note:" in line and "virtual" in line)]
    lines = told or output.splitlines()
    return "\n".join([", and said:", *lines[:most]] if lines else [" and said nothing"])
