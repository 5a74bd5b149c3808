"""Makes the sysroot that the wheel is compiled in: glibc 2.27 and libstdc++ 8, so that it runs wherever they or
later ones are (manylinux_2_28).

sysroot.py FOLDER

Three things are in it besides the packages of packages.txt:

- CUDA's headers, of cuda.txt.
- libstdc++.so, a linker script, as Red Hat's toolsets have it. A program takes what the old libstdc++.so.6 has from
  there, so all of a process share it. Newer functions come from the compiler's own archive, hidden.
- libstdc++.a, a linker script too: the compiler's archive, and what it takes of a newer glibc (newer_glibc.c)."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

import downloads

POOL = "http://archive.ubuntu.com/ubuntu/"
HERE = pathlib.Path(__file__).resolve().parent


def unpack_packages(root):
    for path, digest in downloads.pinned("packages.txt"):
        subprocess.run(["dpkg-deb", "-x", downloads.fetch(POOL + path, digest), root], check=True)


def unpack_cuda(root):
    for requirement, digest in downloads.pinned("cuda.txt"):
        with tempfile.TemporaryDirectory() as scratch:
            wheel = downloads.fetch_wheel(requirement, digest, pathlib.Path(scratch))
            zipfile.ZipFile(wheel).extractall(root)


def take_fmt_by_headers(root):
    """The library of {fmt} in the package is newer than the sysroot's libraries."""
    theirs = root / "usr/lib/x86_64-linux-gnu/cmake/fmt"
    targets = "".join(f"""add_library(fmt::{name} INTERFACE IMPORTED)
target_compile_definitions(fmt::{name} INTERFACE FMT_HEADER_ONLY=1)
""" for name in ("fmt", "fmt-header-only"))
    folder = root / "usr/share/cmake/fmt"
    folder.mkdir()
    (theirs / "fmt-config-version.cmake").rename(folder / "fmt-config-version.cmake")
    (folder / "fmt-config.cmake").write_text(targets)
    shutil.rmtree(theirs)


def own_links(root):
    """Makes links that name a place of the old system name that of the sysroot."""
    for path in root.rglob("*"):
        if path.is_symlink() and os.path.isabs(os.readlink(path)):
            target = root / os.readlink(path)[1:]
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))


def add_newer(libraries, root):
    newest = subprocess.run(["c++", "-print-file-name=libstdc++.a"], check=True, stdout=subprocess.PIPE, text=True)
    (libraries / "libnewer_stdc++.a").symlink_to(newest.stdout.strip())
    subprocess.run(["cc", f"--sysroot={root}", "-std=gnu11", "-O2", "-fPIC", "-c", HERE / "newer_glibc.c",
                    "-o", libraries / "newer_glibc.o"], check=True)
    subprocess.run(["ar", "rcs", libraries / "libnewer_glibc.a", libraries / "newer_glibc.o"], check=True)
    (libraries / "libstdc++.a").write_text("INPUT(libnewer_stdc++.a libnewer_glibc.a)\n")
    (libraries / "libstdc++.so").write_text("INPUT(libstdc++.so.6 libstdc++.a)\n")


def main(folder):
    machine = os.uname().machine
    if machine != "x86_64":
        sys.exit(f"the wheel is built on x86_64 machines only, and this is {machine}: "
                 "cmake/wheel/packages.txt has no packages for it")
    made = pathlib.Path(folder)
    sources = sorted(path for path in HERE.iterdir() if path.is_file())
    state = "".join(f"{path.name}\n{path.read_text()}" for path in sources if path.suffix in (".txt", ".c"))
    state += pathlib.Path(__file__).read_text()
    state += subprocess.run(["c++", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    stamp = made / "stamp"
    if stamp.is_file() and stamp.read_text() == state:
        return
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    root = made.resolve()
    unpack_packages(root)
    unpack_cuda(root)
    take_fmt_by_headers(root)
    own_links(root)
    add_newer(root / "usr/lib/x86_64-linux-gnu", root)
    stamp.write_text(state)


if __name__ == "__main__":
    main(*sys.argv[1:])
