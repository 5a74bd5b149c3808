"""A program that ends in whatever way exits as under PyTorch's own allocator."""

import pytest

EXITS = {
    "tensors alive": "x = torch.ones(1000, device='cuda')",
    "raises": "x = torch.ones(1000, device='cuda')\nraise SystemExit(3)",
    "an error": "x = torch.ones(1000, device='cuda')\nraise ValueError('wanted')",
    "os._exit": "import os\nx = torch.ones(1000, device='cuda')\nos._exit(5)",
    "killed": "import os, signal\nx = torch.ones(9, device='cuda')\nos.kill(os.getpid(), signal.SIGKILL)",
    "a graph alive": "g = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g): y = torch.ones(9, device='cuda')",
    "a pool alive": "p = torch.cuda.MemPool()\nwith torch.cuda.use_mem_pool(p): y = torch.ones(9, device='cuda')",
    "in a capture": "g = torch.cuda.CUDAGraph()\ns = torch.cuda.Stream()\nwith torch.cuda.stream(s):\n  g.capture_begin()\n  y = torch.ones(9, device='cuda')\n  import os; os._exit(6)",
    "a thread that allocates": "import threading\nt = threading.Thread(target=lambda: [torch.ones(9, device='cuda') for _ in range(999)]); t.start(); t.join()",
    "forks": "import os\nx = torch.ones(9, device='cuda')\np = os.fork()\nif p == 0:\n  del x; os._exit(0)\nassert os.waitpid(p, 0)[1] == 0",
    "history on": "torch.cuda.memory._record_memory_history()\nx = torch.ones(9, device='cuda')",
    "out of memory": "try: torch.empty(1 << 50, dtype=torch.uint8, device='cuda')\nexcept torch.OutOfMemoryError: pass\nx = torch.ones(9, device='cuda')",
    "nothing allocated": "pass",
}


@pytest.mark.parametrize("how", EXITS)
def test_exits_as_under_pytorchs_own(run, how):
    source = "import torch\n" + EXITS[how]
    theirs = run(source, mode=None)
    ours = run(source)
    assert ours[0] == theirs[0], ours[2]
    assert "terminate" not in ours[2] and "cistern:" not in ours[2], ours[2]


def test_enabling_too_late_says_so(run):
    source = """
import torch, cistern.torch
torch.ones(1, device="cuda")
try:
    cistern.torch.enable()
except RuntimeError as failure:
    print(failure)
"""
    status, out, _ = run(source, mode=None)
    assert status == 0 and "CUDA is initialised already" in out
