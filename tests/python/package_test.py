"""What is installed, and what the types say."""

import base64
import csv
import email
import hashlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import cistern
import cistern.torch
import pytest
from conftest import PACKAGE, TOP


PROGRAM = TOP / "tests/python/typed_program.py"
MYPY = [sys.executable, "-m", "mypy", "--strict", "--config-file", TOP / "pyproject.toml"]


def needs(module):
    return pytest.mark.skipif(importlib.util.find_spec(module) is None,
                              reason=f"{module} is not here")


def said(*command, **environment):
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                         env={**os.environ, **environment})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_each_function_of_the_library_is_declared():
    """ctypes would cut a pointer to 32 bits, and read a text as a number."""
    from cistern import _native

    declared = {"cistern_" + name for name in _native._ARGUMENTS} | {"cistern_last_error", "cistern_version_string"}
    called = {name for source in PACKAGE.glob("cistern/**/*.py")
              for name in re.findall(r"\blib\.(cistern_\w+)", source.read_text(encoding="utf-8"))}
    assert called <= declared and len(called) > 60, called - declared


@needs("mypy")
def test_the_types_are_strict(tmp_path):
    said(*MYPY, "--cache-dir", tmp_path / "cache", *sorted(PACKAGE.glob("cistern/**/*.py")))


@needs("mypy")
def test_a_program_is_checked_by_the_types(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import cistern\nsize: str = cistern.Allocator('sim').allocate(1)\n")
    ran = subprocess.run([*MYPY, "--cache-dir", tmp_path / "cache", program], capture_output=True, text=True,
                         env={**os.environ, "MYPYPATH": str(PACKAGE)})
    assert "program.py:2: error: Incompatible types" in ran.stdout


@needs("mypy")
def test_a_program_of_every_public_name_is_accepted(tmp_path):
    said(*MYPY, "--cache-dir", tmp_path / "cache", PROGRAM, MYPYPATH=str(PACKAGE))


def test_that_program_runs_and_uses_every_public_name():
    printed = said(sys.executable, "-B", PROGRAM, TOP / "bench/traces/points3d.trace.gz", CISTERN_BACKEND="sim")
    assert re.fullmatch("OUT_OF_MEMORY INVALID_POINTER INVALID_OPTION INVALID_STATE IO_ERROR HOST_OUT_OF_MEMORY\n"
                        r"0\.\d{3} None sim\n", printed)
    source = PROGRAM.read_text()
    assert all(f"cistern.{name}" in source for name in cistern.__all__)
    assert all(f"cistern.torch.{name}" in source for name in cistern.torch.__all__)


def contents(folder):
    return {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def test_use_writes_nothing_into_the_packages_folder(site, tmp_path):
    before = contents(site)
    alone = {"PYTHONPATH": str(site), "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": "", "CISTERN_BACKEND": "sim"}
    (tmp_path / "home").mkdir()
    said(sys.executable, "-B", PROGRAM, TOP / "bench/traces/points3d.trace.gz", **alone)
    said(sys.executable, "-B", "-m", "cistern", "info", **alone)
    said(sys.executable, "-B", "-m", "cistern", "version", **alone)
    assert contents(site) == before
    assert list((tmp_path / "home").iterdir()) == []


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    name = said(sys.executable, "-c", """
import os, sys
from scikit_build_core import build
os.chdir(sys.argv[1])
print(build.build_sdist(sys.argv[2]))
""", TOP, folder).splitlines()[-1]
    return folder / name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, sdist):
    """Built from the source distribution as `pip install` does, but without a network, and optimised little: it
    compiles the library once more."""
    launcher = os.environ.get("LAUNCHER", "")
    folder = tmp_path_factory.mktemp("wheel")
    said(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index",
         "--wheel-dir", folder, sdist, CMAKE_CXX_COMPILER_LAUNCHER=launcher,
         CMAKE_ARGS="-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 -DCMAKE_CXX_FLAGS_RELEASE=-O1")
    (made,) = folder.glob("*.whl")
    return made


@needs("scikit_build_core")
def test_a_source_distribution_has_what_a_build_needs_and_no_more(sdist):
    version = cistern.__version__
    assert sdist.name == f"cistern_gpu-{version}.tar.gz"
    with tarfile.open(sdist) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    for folder in ("allocator", "pools", "handles", "include", "interop", "cmake"):
        for path in (TOP / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
                assert str(path.relative_to(TOP)) in names
    assert {"CMakeLists.txt", "pyproject.toml", "LICENSE", "PKG-INFO"} <= names
    assert not [name for name in names if name.startswith(("bench/", "build/", "docs/", "tests/", "."))]


@needs("scikit_build_core")
@needs("pip")
def test_a_wheel_says_what_it_is_and_lists_its_files(wheel):
    folder = f"cistern_gpu-{cistern.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as content:
        listed = {row[0]: row[1:] for row in csv.reader(io.TextIOWrapper(content.open(f"{folder}/RECORD")))}
        assert set(listed) == {name for name in content.namelist() if not name.endswith("/")}
        for name, (digest, size) in listed.items():
            if name != f"{folder}/RECORD":
                data = content.read(name)
                whole = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert (digest, size) == (f"sha256={whole}", str(len(data))), name
        about = email.message_from_bytes(content.read(f"{folder}/METADATA"))
    assert (about["Name"], about["Version"]) == ("cistern-gpu", cistern.__version__)
    assert (about["Requires-Python"], about["License-Expression"]) == (">=3.9", "Apache-2.0")
    assert about.get_all("Requires-Dist") is None and f"{folder}/licenses/LICENSE" in listed


@needs("scikit_build_core")
@needs("pip")
def test_a_wheel_works_by_itself(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    version = cistern.__version__
    assert wheel.name.startswith(f"cistern_gpu-{version}-py3-none-")
    for path in PACKAGE.glob("cistern/**/*.py"):
        assert str(path.relative_to(PACKAGE)) in names
    compiled = [*(TOP / "interop/torch").rglob("*.[ch]pp"), *(TOP / "interop/sharing").rglob("*.[ch]pp")]
    for path in [*(TOP / "include/cistern").rglob("*.h*"), *compiled]:
        assert f"cistern/_sources/{path.relative_to(TOP)}" in names
    assert {"cistern/py.typed", "cistern/_lib/libcistern.so.0"} <= names

    said(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    said(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
    alone = {"PYTHONPATH": "", "CISTERN_ROOT": ""}
    trace = TOP / "bench/traces/unet_buckets.trace.gz"
    printed = said(python, "-c", """
import sys, cistern
from cistern import _places
assert all(str(place).startswith(sys.prefix) for place in (
    cistern.__file__, _places.library(), _places.command(), _places.include()))
with cistern.Allocator("sim") as allocator, allocator.buffer(1000) as buffer:
    print(buffer.size)
print(cistern.replay(sys.argv[1]).events)
""", trace, **alone)
    assert printed == "1024\n41224\n"
    assert version in said(python, "-m", "cistern", **alone)
    assert version in said(tmp_path / "venv/bin/cistern", "--version", **alone)
    assert said(tmp_path / "venv/bin/cistern", "info", **alone) == said(python, "-m", "cistern", **alone)
    assert json.loads(said(python, "-m", "cistern", "info", "--json", **alone))["conflicts"] == []

    said(python, "-m", "pip", "uninstall", "-y", "cistern-gpu")
    assert list((tmp_path / "venv").rglob("*cistern*")) == []
