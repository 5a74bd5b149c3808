"""Keeps what the extension of `cistern.torch` needs of each release of PyTorch, without PyTorch: headers, and
the names that its libraries have. PyTorch's wheels come from PyPI once, 0.5 to 0.9 GB each.

torch_releases.py FOLDER

FOLDER then has a link for each release of torch.txt to a folder of the cache, with two folders in it:

- include: PyTorch's headers.
- lib: the libraries that the extension is linked to, with their names alone. libc10_cuda.so has those of the CUDA
  runtime too, because it brings the runtime into the process, of CUDA 12 or of CUDA 13."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

import downloads

HEADERS = tuple(f"torch/include/{each}" for each in
                ("ATen/core/", "c10/", "torch/headeronly/", "torch/csrc/api/include/torch/version.h"))
LIBRARIES = ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so")
FORM = "2"  # of what is kept: a folder of another form is made anew


def names(library):
    """Each name that it defines, and whether that is a function."""
    listed = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    # No version: PyTorch's have none, and the extension asks for none of the CUDA runtime.
    return {name.partition("@")[0]: kind in "TWi" for name, kind, *_ in map(str.split, listed.splitlines())}


def write_named(library, symbols):
    """A library that has the names and nothing else."""
    text = "".join(f".globl {name}\n.type {name},@{'function' if is_function else 'object'}\n.size {name},8\n{name}:\n"
                   for name, is_function in sorted(symbols.items()))
    subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,-soname={library.name}", "-x", "assembler", "-",
                    "-o", library], input=text, text=True, check=True)


def keep(requirement, digest, runtime, kept):
    unfinished = kept.parent / f"{kept.name}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "lib").mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=unfinished) as scratch:
        print(f"download {requirement}", flush=True)
        with zipfile.ZipFile(downloads.fetch_wheel(requirement, digest, pathlib.Path(scratch))) as content:
            content.extractall(scratch, [name for name in content.namelist() if name.startswith(HEADERS)])
            content.extractall(scratch, [f"torch/lib/{name}" for name in LIBRARIES])
        torch = pathlib.Path(scratch) / "torch"
        (torch / "include").rename(unfinished / "include")
        for name in LIBRARIES:
            symbols = names(torch / "lib" / name)
            write_named(unfinished / "lib" / name, symbols | (names(runtime) if name == "libc10_cuda.so" else {}))
    unfinished.rename(kept)


def main(folder):
    made = pathlib.Path(folder)
    runtime = made.parent / "sysroot/nvidia/cu13/lib/libcudart.so.13"
    releases = {}
    for requirement, digest in downloads.pinned("torch.txt"):
        kept = downloads.CACHE / f"{requirement}-{digest[:16]}-{FORM}"
        if not kept.is_dir():
            keep(requirement, digest, runtime, kept)
        releases[requirement.rpartition("==")[2]] = str(kept)
    # A folder that is written anew would have the extensions compiled anew.
    if not made.is_dir() or {path.name: os.readlink(path) for path in made.iterdir()} != releases:
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        for release, kept in releases.items():
            (made / release).symlink_to(kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
