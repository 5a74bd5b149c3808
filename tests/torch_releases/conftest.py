"""PyTorch on Cistern, without a GPU: PyTorch's functions find the fake runtime, Cistern has simulated devices, and
all tests run in one process. `./dev torch-test` builds what is needed, and names its folder here.

Each test is charged with the verbs of PyTorch's interface that it reached: the folder's verbs.txt. If all tests
ran, a verb that none has reached is a failure."""

import ctypes
import gc
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

if not os.environ.get("TORCH_TEST_FOLDER"):
    pytest.skip("./dev torch-test runs these", allow_module_level=True)
FOLDER = Path(os.environ["TORCH_TEST_FOLDER"])
# Before PyTorch, so that its functions stand in front of the real runtime's.
ctypes.CDLL(str(FOLDER / "libcuda.so.1"), ctypes.RTLD_GLOBAL)

import torch  # noqa: E402

import cistern.torch  # noqa: E402
from verbs import Verbs  # noqa: E402

cistern.torch.enable("native")
with open("/proc/self/maps", encoding="utf-8") as maps:
    VERBS = Verbs(next(line.split()[-1] for line in maps if "/cistern_torch-" in line))
torch.cuda.init()
REACHED_BY = defaultdict(list, {verb: ["torch.cuda.init"] for verb in VERBS.entered()})
RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def pytest_configure(config):
    config.addinivalue_line("markers", "since(minor): needs PyTorch 2.minor or later")


def pytest_runtest_setup(item):
    for mark in item.iter_markers("since"):
        if RELEASE < (2, mark.args[0]):
            pytest.skip(f"since PyTorch 2.{mark.args[0]}")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.name == "test_every_verb_was_reached")


@pytest.fixture(autouse=True)
def alone(request):
    """A test begins with an empty cache, leaves no tensor behind, and is charged with what it reached."""
    VERBS.clear()
    yield
    for verb in VERBS.entered():
        REACHED_BY[verb].append(request.node.name)
    gc.collect()
    for device in (0, 1):
        torch.cuda.synchronize(device)
        torch.cuda.set_per_process_memory_fraction(1.0, device)
    torch.cuda.set_device(0)
    torch.cuda.empty_cache()


@pytest.fixture
def overflow():
    """Overflow on the first device, and its capacity is so many bytes more than it has now."""

    def begin(more):
        torch.cuda.empty_cache()
        total = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + more) / total)
        cistern.default(0).set_overflow("4GiB")

    yield begin
    cistern.default(0).set_overflow(0)


@pytest.fixture
def reached():
    """verb -> the tests that reached it."""
    return VERBS, REACHED_BY


@pytest.fixture(scope="session")
def direct():
    """Calls a function of direct.cpp; RuntimeError with what it says."""
    library = ctypes.CDLL(str(FOLDER / "direct.so"))

    def call(name, *arguments):
        function = getattr(library, f"direct_{name}")
        function.restype = ctypes.c_char_p
        failed = function(*arguments)
        if failed is not None:
            raise RuntimeError(failed.decode())

    return call


def pytest_sessionfinish():
    lines = [f"{verb}\n    {', '.join(REACHED_BY[verb]) or 'NOT REACHED'}\n" for verb in sorted(VERBS.names)]
    (FOLDER / "verbs.txt").write_text("".join(lines), encoding="utf-8")


def in_host(tensor):
    """Whether the tensor lies in the host's memory."""
    return cistern.torch._host_memory._in_host(tensor.device.index, tensor.untyped_storage().data_ptr())


def run_alone(program, **environment):
    """The output of the program, in a process of its own that has the fake runtime, `torch` and `cistern.torch`. Its
    errors go into an AssertionError."""
    begin = ("import ctypes, os\n"
             "ctypes.CDLL(os.environ['TORCH_TEST_FOLDER'] + '/libcuda.so.1', ctypes.RTLD_GLOBAL)\n"
             "import torch, cistern.torch\n")
    done = subprocess.run([sys.executable, "-c", begin + program], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
