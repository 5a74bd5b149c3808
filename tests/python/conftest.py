"""What the tests share. They run on the simulated device; no GPU is looked for."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = TOP / "interop/python"
sys.path.insert(0, str(PACKAGE))

import cistern  # noqa: E402

MIB = 1 << 20


@pytest.fixture
def allocator():
    """On a simulated device of its own, with 1 GiB. tests/hip runs some of the files on a played GPU."""
    backend = os.environ.get("CISTERN_TEST_BACKEND", "sim")
    made = cistern.Allocator.sim(capacity=1 << 30, conf="") if backend == "sim" else cistern.Allocator(backend, conf="")
    with made:
        yield made


@pytest.fixture
def run():
    """A function that runs a program in a Python of its own; what it printed."""

    def ran(program, *arguments, expect=0, **environment):
        result = subprocess.run([sys.executable, "-B", "-X", "faulthandler", "-c", program,
                                 *map(str, arguments)], capture_output=True, text=True, timeout=120,
                                env={**os.environ, "PYTHONPATH": str(PACKAGE), **environment})
        assert result.returncode == expect, result.stderr
        assert "Exception ignored" not in result.stderr, result.stderr
        return result.stdout if expect == 0 else result.stderr

    return ran


@pytest.fixture
def site(tmp_path):
    """A folder with a copy of the package, which is in a place without a build."""
    shutil.copytree(PACKAGE / "cistern", tmp_path / "site/cistern", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site"


@pytest.fixture
def trace():
    return TOP / "bench/traces/unet_buckets.trace.gz"
