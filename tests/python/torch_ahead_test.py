"""The extension that a wheel has compiled ahead (_compiled.py), and the release of PyTorch that it is for. If it does
not fit or is damaged, the extension is compiled here. No PyTorch: see torch_build_test.py."""

import json
import os
import subprocess
import sys
import types

import pytest
from cistern import _places
from cistern.torch import _cached, _compiled, _digest, _native
from torch_build_test import cache, make_library, refused, runs  # noqa: F401  # `cache` is a fixture

HEADERS = ["c10/core/Allocator.h", "c10/cuda/CUDACachingAllocator.h"]
find_compiled, release_of_pytorch = _compiled.find, _native._release  # the fixture `cache` replaces them


@pytest.fixture
def ahead(cache, monkeypatch, tmp_path):
    """A PyTorch 2.13.1 with headers, and a package that has an extension for them. Its path."""
    torch = tmp_path / "torch"
    for name in HEADERS:
        (torch / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (torch / "include" / name).write_text(f"// {name}")
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(
        __version__="2.13.1+cu130", __file__=str(torch / "__init__.py"), compiled_with_cxx11_abi=lambda: True))
    package = tmp_path / "site/cistern"
    (package / "torch/_compiled").mkdir(parents=True)
    extension = package / "torch/_compiled/cistern_torch-2.13.0.so"
    (tmp_path / "ahead.c").write_text("int compiled_ahead(void) { return 1; }")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", extension, tmp_path / "ahead.c"], check=True)
    digests = {_digest.of_files(torch / "include", HEADERS): {"name": extension.name, "bytes": extension.stat().st_size},
               "another": {"name": "missing.so", "bytes": 1}}
    (extension.parent / "table.json").write_text(json.dumps({"2.13": {"headers": HEADERS, "digests": digests}}))
    monkeypatch.setattr(_compiled, "find", find_compiled)
    monkeypatch.setattr(_places, "_ROOT", None)
    monkeypatch.setattr(_places, "_PACKAGE", package)
    (package / "_sources/interop/torch").mkdir(parents=True)
    make_library(monkeypatch, tmp_path)
    return extension


def is_ahead(library):
    return hasattr(library, "compiled_ahead")


def test_an_extension_for_the_headers_of_this_pytorch_is_not_compiled(ahead, cache, tmp_path):
    assert _compiled.find() == ahead
    assert is_ahead(_cached.load())
    assert not (tmp_path / "runs").exists() and not cache.exists()


@pytest.mark.parametrize("header", HEADERS)
def test_for_other_headers_the_extension_is_compiled(ahead, tmp_path, header):
    with (tmp_path / "torch/include" / header).open("a") as changed:
        changed.write(" ")
    assert not is_ahead(_cached.load()) and runs(tmp_path) == 1


def test_for_a_pytorch_without_a_header_the_extension_is_compiled(ahead, tmp_path):
    (tmp_path / "torch/include" / HEADERS[1]).unlink()
    assert not is_ahead(_cached.load()) and runs(tmp_path) == 1


@pytest.mark.parametrize("name, value", [("__version__", "2.16.0"), ("compiled_with_cxx11_abi", lambda: False)])
def test_for_another_release_or_abi_the_extension_is_compiled(ahead, tmp_path, name, value):
    setattr(sys.modules["torch"], name, value)
    assert not is_ahead(_cached.load()) and runs(tmp_path) == 1


def test_an_extension_that_does_not_load_is_compiled(ahead, tmp_path):
    ahead.write_bytes(b"x" * ahead.stat().st_size)
    assert not is_ahead(_cached.load()) and runs(tmp_path) == 1


def damaged(file, tmp_path):
    """Loads what is compiled here, with one line that names the file."""
    with pytest.warns(UserWarning) as warned:
        assert not is_ahead(_cached.load())
    (warning,) = warned
    assert str(file) in str(warning.message) and "\n" not in str(warning.message)
    assert runs(tmp_path) == 1


@pytest.mark.parametrize("text", [
    "", "[]", "{", '{"2.13": null}', '{"2.13": {"headers": ["', '{"2.13": {"headers": null, "digests": {}}}',
    '{"2.13": {"headers": [1], "digests": {}}}', '{"2.13": {"headers": [], "digests": {"a": "b"}}}', b"\xff\xfe{"])
def test_with_a_damaged_table_the_extension_is_compiled(ahead, tmp_path, text):
    table = ahead.with_name("table.json")
    table.write_bytes(text if isinstance(text, bytes) else text.encode())
    damaged(table, tmp_path)


def test_without_a_table_the_extension_is_compiled(ahead, tmp_path):
    ahead.with_name("table.json").unlink()
    damaged(ahead.with_name("table.json"), tmp_path)


def test_an_extension_that_is_truncated_or_missing_is_not_loaded(ahead, tmp_path):
    whole = ahead.read_bytes()
    ahead.write_bytes(whole[:len(whole) // 2])  # the loader would map it, and die of it
    damaged(ahead, tmp_path)
    ahead.unlink()
    with pytest.raises(_compiled.Damaged, match=f"{ahead.name} is missing"):
        _compiled.find_for("2.13.1", tmp_path / "torch")


@pytest.mark.parametrize("version", ["3", "weird", "", "2.x"])
def test_a_version_that_names_no_release_is_no_native_allocator(cache, monkeypatch, version):
    monkeypatch.setattr(_native, "_release", release_of_pytorch)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(__version__=version))
    refused(f"cannot tell the release of PyTorch from its version {version!r}")


@pytest.mark.parametrize("version, release", [("2.13.1+cu130", (2, 13)), ("2.9.0a0+git1", (2, 9)), ("3.0", (3, 0))])
def test_the_release_of_pytorch_is_told_by_its_version(monkeypatch, version, release):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(__version__=version))
    assert release_of_pytorch() == release


def test_a_checkout_that_is_asked_for_comes_before_what_was_compiled_ahead(ahead, monkeypatch, tmp_path):
    monkeypatch.setattr(_places, "_ROOT", str(tmp_path))
    (tmp_path / "interop/torch").mkdir(parents=True)
    assert not is_ahead(_cached.load()) and runs(tmp_path) == 1
