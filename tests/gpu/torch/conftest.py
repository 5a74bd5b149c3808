"""PyTorch on Cistern, on a GPU: each test runs with Cistern below PyTorch (native), in this process.
What needs a process of its own uses `run`."""

import gc
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)
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
