"""A project outside the tree that uses Cistern as README.md says: once installed, by find_package, and
once beside its own sources, by add_subdirectory. Its program and its CMake lines are the README's.

consumer.py SOURCES BUILD    BUILD is where Cistern itself was built"""

import pathlib
import re
import subprocess
import sys
import tempfile

from examples import examples

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
add_executable(your_program main.cpp)
"""


def run(*command):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def build_and_run(folder, lines, code, *settings):
    folder.mkdir(exist_ok=True)
    (folder / "main.cpp").write_text(code)
    (folder / "CMakeLists.txt").write_text(PROJECT + lines)
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", *settings)
    run("cmake", "--build", folder / "build", "--target", "your_program", "-j", "2")
    return run(folder / "build" / "your_program")


if __name__ == "__main__":
    sources, cistern = map(pathlib.Path, sys.argv[1:])
    readme = (sources / "README.md").read_text()
    (lines,) = re.findall(r"^```cmake\n(.*?)^```$", readme, re.M | re.S)
    engine, pools = examples(readme)
    installed = next(line for line in lines.splitlines() if line.startswith("find_package"))
    beside = lines.replace(installed, "add_subdirectory(cistern)")

    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        run("cmake", "--install", cistern, "--prefix", top / "installed")
        prefix = f"-DCMAKE_PREFIX_PATH={top / 'installed'}"
        said = build_and_run(top / "installed_engine", lines, engine, prefix)
        assert "the same memory again: yes" in said, said
        both = lines.replace("cistern::engine", "cistern::pools")
        assert "users of pool" in build_and_run(top / "installed_pools", both, pools, prefix)
        run(top / "installed" / "bin" / "cistern", "--version")

        (top / "beside").mkdir()
        (top / "beside" / "cistern").symlink_to(sources)
        # Quick to compile; that it is quick to run is for others to say.
        said = build_and_run(top / "beside", beside, engine, "-DCMAKE_BUILD_TYPE=Debug",
                             "-DCMAKE_UNITY_BUILD=ON", "-DCISTERN_CUDA=OFF", "-DCISTERN_HIP=OFF")
        assert "the same memory again: yes" in said, said
