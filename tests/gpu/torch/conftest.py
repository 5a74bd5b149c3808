"""PyTorch on Cistern, on a GPU: each test runs with Cistern below PyTorch (native), in this process.
What needs a process of its own uses `run`."""

import gc
import os
import subprocess
import sys

import pytest

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before any test runs: for results that repeat
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)
import cistern  # noqa: E402
import cistern.torch  # noqa: E402

cistern.torch.enable("native")


@pytest.fixture(autouse=True)
def nothing_left():
    """A test leaves no tensor behind."""
    yield
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


@pytest.fixture
def limit():
    """Lets a test reserve so many bytes more than is reserved now."""
    total = torch.cuda.get_device_properties(0).total_memory

    def limit_to(more):
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + more) / total)

    yield limit_to
    torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.fixture
def repeatable():
    """Results repeat to the last bit, and overflow is on. Skips where the host has no pages for the device."""
    try:
        cistern.default(0).set_overflow("4GiB")
    except cistern.InvalidArgumentError as none:
        pytest.skip(f"no pages of host memory: {none}")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    cistern.default(0).set_overflow(0)


def same(a, b):
    """Whether two trainings, each its losses and its parameters first, came to the same."""
    return a[0] == b[0] and all(torch.equal(one, other) for one, other in zip(a[1], b[1]))


@pytest.fixture
def run():
    """Runs Python source in a process of its own; (exit status, stdout, stderr)."""

    def run_source(source, *args, mode="native", environment=None):
        begin = f"import cistern.torch; cistern.torch.enable({mode!r})\n" if mode else ""
        ran = subprocess.run(
            [sys.executable, "-c", begin + source, *args],
            capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, **(environment or {})},
        )
        return ran.returncode, ran.stdout, ran.stderr

    return run_source
