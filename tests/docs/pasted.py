#!/usr/bin/env python3
"""Runs the lines of README.md and docs/install.md that install Cistern and build a program with it, as they stand. Then
the lines of all pages that call the installed command, and their programs in C and C++.

pasted.py [PART…]    all, or those that have PART in them

It is for a fresh Debian 12 or Ubuntu 24.04 with python3 and nothing else (a chroot, a container), because `./dev install`
has to bring what the other lines use. The lines run in the checkout, and what they make there is removed."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import blocks

TOP = pathlib.Path(__file__).resolve().parents[2]
README, INSTALL = "README.md", "docs/install.md"


def block_with(page, language, part):
    (found,) = (block.text for block in blocks.blocks()
                if (block.page, block.language) == (page, language) and part in block.text)
    return found


def project(folder):
    """The program of the README, with the lines of docs/install.md in its CMakeLists.txt."""
    folder.mkdir(exist_ok=True)
    (folder / "main.cpp").write_text(block_with(README, "cpp", "the same memory again"))
    lines = block_with(INSTALL, "cmake", "find_package")
    (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\n"
                                           f"add_executable(your_program main.cpp)\n{lines}")


def run(lines, prefix):
    print(f"== {lines}", flush=True)
    lines = re.sub(r"\bDIR\b", prefix, lines)
    subprocess.run(["bash", "-euo", "pipefail", "-c", lines], cwd=TOP, check=True)


def programs():
    """The programs of the pages, but those of a GPU, and those that have Cistern's sources."""
    return [block for block in blocks.blocks() if block.language in ("c", "cpp") and blocks.runs_somewhere(block)
            and '#include "handles/' not in block.text]


def build_and_run(block, folder, prefix):
    """By the line of the README, for a file of that name."""
    (folder / f"main.{block.language}").write_text(block.text)
    compiler = "cc -std=c99" if block.language == "c" else "c++ -std=c++17"
    print(f"== {block.page}\n{block.text}", flush=True)
    subprocess.run(f"{compiler} main.{block.language} -I {prefix}/include -L {prefix}/lib -lcistern -Wl,-rpath,{prefix}/lib && "
                   "./a.out", shell=True, cwd=folder, check=True)


def main(parts):
    made = [TOP / name for name in ("main.cpp", "main.c", "a.out", "your_project")]
    taken = [path.name for path in made if path.exists()]
    if taken:
        sys.exit(f"{', '.join(taken)}: would be overwritten")
    wanted = lambda lines: not parts or any(part in lines for part in parts)
    with tempfile.TemporaryDirectory() as prefix:
        try:
            project(TOP / "your_project")
            shutil.copy(TOP / "your_project/main.cpp", TOP / "main.cpp")
            (TOP / "main.c").write_text(block_with(README, "c", "int main(void)"))
            run(block_with(INSTALL, "sh", "./dev install DIR"), prefix)
            for page, part in blocks.PASTED:
                lines = block_with(page, "sh", part)
                if part != "./dev install DIR" and wanted(lines):
                    run(lines, prefix)
        finally:
            for path in made:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        with_the_installed(pathlib.Path(prefix), wanted)


def with_the_installed(prefix, wanted):
    for block in filter(blocks.commands, blocks.blocks()):
        if wanted(block.text):
            print(f"== {block.text}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                blocks.given(pathlib.Path(folder), prefix / "bin/cistern")
                ran = blocks.run_commands(block, folder, prefix / "bin/cistern")
                print(ran.stdout, ran.stderr, sep="", flush=True)
                ran.check_returncode()
    for block in programs():
        if wanted(block.text):
            with tempfile.TemporaryDirectory() as folder:
                build_and_run(block, pathlib.Path(folder), prefix)


if __name__ == "__main__":
    main(sys.argv[1:])
