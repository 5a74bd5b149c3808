"""What `cistern.torch` says where it cannot be; tests/gpu/torch has what it does."""

import os
import subprocess
import sys
import types

import pytest

import cistern.torch
from cistern import allocator as allocators
from cistern.torch import _build, _host_memory, _statistics


def test_an_unknown_mode_is_named():
    with pytest.raises(ValueError, match="mode 'fast' is none of auto, native, plugin"):
        cistern.torch.enable("fast")
    with pytest.raises(TypeError, match="mode must be a str or None, not int"):
        cistern.torch.enable(5)
    assert cistern.torch.enabled() is None


@pytest.mark.parametrize("name, value, allowed", [("CISTERN_TORCH", "fast", "none of auto, native, plugin"),
                                                  ("CISTERN_BACKEND", "hip", "must be one of auto, cuda, sim")])
def test_a_wrong_variable_of_the_environment_is_named(monkeypatch, name, value, allowed):
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name}.*'{value}'.*{allowed}"):
        cistern.torch.enable()


def test_without_pytorch_it_is_an_import_error():
    source = "import sys; sys.modules['torch'] = None\nimport cistern.torch; cistern.torch.enable()"
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "torch" in ran.stderr.splitlines()[-1]
    assert ran.stderr.splitlines()[-1].startswith(("ImportError", "ModuleNotFoundError"))


def test_a_script_without_pytorch_has_one_line_of_reason(tmp_path):
    script = tmp_path / "script.py"
    script.touch()
    source = ("import runpy, sys; sys.modules['torch'] = None\n"
              f"sys.argv = ['cistern.torch', {str(script)!r}]\n"
              "runpy.run_module('cistern.torch', run_name='__main__')")
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr == "python -m cistern.torch: PyTorch is not installed for this Python\n"


def test_without_a_compiler_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(_build.BuildError, match="no C\\+\\+ compiler is found"):
        _build._compiler()


def test_what_the_compiler_says_is_passed_on(monkeypatch, tmp_path):
    broken = tmp_path / "broken.cpp"
    broken.write_text("#error no such release\n")
    monkeypatch.setattr(_build, "_sources", lambda: [broken])
    compiler = os.environ.get("CXX", "c++")
    with pytest.raises(_build.BuildError, match="no such release"):
        _build.compile_to([compiler, "-shared"], tmp_path / "made.so")
    assert not (tmp_path / "made.so").exists()


def test_the_sources_are_there():
    names = {path.name for path in _build._files("*.hpp") + _build._sources()}
    assert {"torch_allocator.hpp", "torch_sharing.cpp", "shared_blocks.hpp", "passing.cpp"} <= names


def test_memory_stats_gain_cisterns_own_counts(monkeypatch, allocator):
    theirs = {}
    cuda = types.SimpleNamespace(memory=types.SimpleNamespace(),
                                 memory_stats_as_nested_dict=lambda device=None: dict(theirs))
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(_host_memory, "_index", lambda device: 0)
    monkeypatch.setattr(allocators, "default", lambda device: allocator)
    _statistics.follow()
    assert cuda.memory_stats_as_nested_dict is cuda.memory.memory_stats_as_nested_dict
    assert cuda.memory_stats_as_nested_dict() == {}  # CUDA is not initialised
    theirs["num_ooms"] = 0
    allocator.allocate(1 << 20)
    stats = cuda.memory.memory_stats_as_nested_dict(device=0)
    assert stats["num_ooms"] == 0 and stats["cistern"]["memory_call_ns"] == allocator.stats().memory_call_ns > 0
    assert stats["cistern"]["pages"] == {"created": 1, "recycled": 0, "revived": 0, "retired": 0, "returned": 0,
                                         "freezes": 0}
