"""CuPy and Numba on Cistern, on a GPU. Each test runs in a process of its own, as what a library allocates by
is chosen once in each."""

import pathlib
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def run():
    """Runs a program in a Python of its own; what it printed."""

    def ran(program, needs):
        pytest.importorskip(needs)
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                                timeout=300, check=False)
        if any(none in result.stderr for none in ("cudaErrorInsufficientDriver", "cudaErrorNoDevice",
                                                  "CudaSupportError")):
            pytest.skip("no GPU")
        assert result.returncode == 0, result.stderr
        return result.stdout

    return ran
