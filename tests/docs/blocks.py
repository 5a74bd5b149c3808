"""The blocks of code in the pages, and which test runs each of them; or why none does."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
from typing import NamedTuple

TOP = pathlib.Path(__file__).resolve().parents[2]


class Block(NamedTuple):
    page: str
    language: str
    text: str


#: Blocks of sh that need the command alone; commands_test.py runs them, and pasted.py where it is installed.
COMMANDS = ("cistern ", "mkdir plain", "PATH=$HOME/.local/bin")
#: Those of pasted.py: they build and install.
PASTED = [("README.md", "main.cpp -I"), ("docs/install.md", "./dev install DIR"), ("docs/install.md", "-S your_project"),
          ("docs/install.md", "cc main.c"), ("docs/install.md", "pkg-config"), ("docs/install.md", "cmake --preset release")]
#: Python's own tests: tests/python/docs_test.py, tests/gpu/python/test_cookbook.py, tests/torch_releases/test_docs.py.
PYTHON = ["README.md", "docs/cookbook.md", "docs/overflow.md", "docs/python.md", "docs/pytorch.md", "docs/sleep.md",
          "interop/python/README.md"]
PYTHON_TESTS = "the tests of Python"
#: Nothing runs these: (page, a part of the one such block, why)
NOT_RUN = [
    ("CONTRIBUTING.md", "./dev setup", "all builds and tests"),
    ("README.md", "./dev demo", "all builds and tests"),
    ("README.md", "--overflow 64GiB -- ./app", "a GPU's program; tests/preload runs others"),
    ("docs/benchmarks.md", "./dev bench", "benchmarks"),
    ("docs/benchmarks.md", "valgrind", "a benchmark; tests/golden counts the same"),
    ("docs/benchmarks.md", "--preset cuda", "needs CUDA's toolkit"),
    ("docs/c-api.md", '"version":1', "output"),
    ("docs/handles.md", "cublasSgemm", "a fragment"),
    ("docs/handles.md", "setWorkspaceAllocator(0", "a fragment"),
    ("docs/install.md", "python -m cistern.torch train.py", "needs PyTorch's headers, 5 GB"),
    ("docs/install.md", "import cupy", "needs PyTorch's headers, 5 GB"),
    ("docs/install.md", "--no-index", "needs the wheel; tests/python/package_test.py installs one"),
    ("docs/install.md", "cpack -G DEB", "tests/package/package_test.py makes the package"),
    ("docs/install.md", "find_package(cistern 0.1", "a fragment; tests/package has it in a project"),
    ("docs/install.md", "add_subdirectory", "a fragment; tests/package has it in a project"),
    ("docs/install.md", "FetchContent", "a fragment; tests/package has it in a project"),
    ("docs/life-of-an-allocation.md", "slow_path", "a picture"),
    ("docs/options.md", "CISTERN_CONF=", "a fragment"),
    ("docs/overflow.md", "overflow: 44.00 MiB", "output"),
    ("docs/porting.md", "class NameDevice", "a fragment"),
    ("docs/porting.md", "kTableEntry", "a fragment"),
    ("docs/porting.md", "[contract]", "builds a port's tests"),
    ("docs/porting.md", "fetch_packages.sh runtime", "fetches another release of AMD's runtime"),
    ("docs/python.md", "./dev wheel", "needs PyTorch's headers, 5 GB"),
    ("docs/pytorch.md", "--its --arguments\npython", "a program of yours"),
    ("docs/pytorch.md", "--report report.html", "a program of yours"),
    ("docs/pytorch.md", "61.20 GiB", "output"),
    ("docs/replay.md", "fits in", "output"),
    ("docs/replay.md", "bench/sweep.py", "takes minutes"),
    ("docs/streams-and-capture.md", "reused within", "output"),
    ("docs/streams-and-capture.md", "cudaStreamBeginCapture", "a fragment"),
    ("interop/README.md", "run_replay", "a picture"),
    ("interop/python/README.md", "./dev wheel", "needs PyTorch's headers, 5 GB"),
    ("tests/hip/device/README.md", "LD_PRELOAD=", "a fragment"),
]


@functools.cache
def blocks():
    git = shutil.which("git")
    listed = subprocess.run([git, "-C", TOP, "ls-files", "*.md"], capture_output=True, text=True).stdout if git else ""
    names = listed.split() or [str(path.relative_to(TOP)) for path in TOP.glob("**/*.md")
                                      if path.relative_to(TOP).parts[0] != "build"]
    return [Block(name, *found) for name in sorted(names)
            for found in re.findall(r"^```([^\n]*)\n(.*?)^```$", (TOP / name).read_text(), re.M | re.S)]


def runs_somewhere(block):
    """The name of what runs the block, or None."""
    if block.language in ("cpp", "c", "cuda") and "int main(" in block.text:
        return "tests/docs/CMakeLists.txt"
    if block.language == "python" or re.match(r"(import|from) ", block.text):
        return PYTHON_TESTS if block.page in PYTHON else None
    if block.language == "sh" and any(block.page == page and part in block.text for page, part in PASTED):
        return "pasted.py"
    return "commands_test.py" if commands(block) else None


def commands(block):
    """The lines of the block that need the command alone, without those that start a program on a GPU."""
    if block.language != "sh" or not re.match("|".join(map(re.escape, COMMANDS)), block.text):
        return ""
    lines = re.sub(r"^(cistern run|python -m cistern\.torch)\b.*\n", "", block.text, flags=re.M)
    return lines.replace("TRACE", "my_program.trace.gz")


def given(folder, command):
    """The files that the pages' lines of the command name, in a folder."""
    trace = TOP / "bench/traces/unet_buckets.trace.gz"
    (folder / "bench").symlink_to(TOP / "bench")
    for name in ("my_program", "app", "monday", "tuesday"):
        shutil.copy(trace, folder / f"{name}.trace.gz")
    subprocess.run([command, "report", trace, "--format", "pickle", "-o", folder / "snapshot.pickle"], check=True)
    (tiny,) = re.findall(r"\n\n((?:    .*\n)*    # {\"name\": \"tiny\"}\n(?:    .*\n)*)\n", (TOP / "docs/traces.md").read_text())
    (folder / "tiny.trace").write_text(re.sub("(?m)^    ", "", tiny))
    if shutil.which("zstd"):
        subprocess.run(["zstd", "-q", trace, "-o", folder / "my.trace.zst"], check=True)


def run_commands(block, folder, command):
    """The block's lines, as they stand, in the folder that has what is `given`."""
    lines = commands(block)
    if not shutil.which("zstd"):
        lines = re.sub("^zstd .*\n", "", lines, flags=re.M)
    return subprocess.run(["bash", "-euo", "pipefail", "-c", lines], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"})
