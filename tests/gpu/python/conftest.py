"""CuPy and Numba on Cistern, on a GPU. Each test runs in a process of its own, as what a library allocates by
is chosen once in each."""

import pathlib
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]

# What a library must be able to do by itself, without Cistern, before a failure says anything.
ALONE = {"numba": """
import numpy
from numba import cuda

@cuda.jit
def set_first(values):
    values[0] = 1

values = cuda.to_device(numpy.zeros(1))
set_first[1, 1](values)
assert values.copy_to_host()[0] == 1
"""}


def python(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=300, check=False)


@pytest.fixture
def run():
    """Runs a program in a Python of its own; what it printed."""

    def ran(program, needs):
        pytest.importorskip(needs)
        result = python(program)
        if any(none in result.stderr for none in ("cudaErrorInsufficientDriver", "cudaErrorNoDevice",
                                                  "CudaSupportError")):
            pytest.skip("no GPU")
        if result.returncode != 0 and needs in ALONE:
            alone = python(ALONE[needs])
            if alone.returncode != 0:
                why = (alone.stderr.splitlines() or ["no message"])[-1]
                pytest.skip(f"{needs} runs no kernel here, without Cistern either: {why}")
        assert result.returncode == 0, result.stderr
        return result.stdout

    return ran
