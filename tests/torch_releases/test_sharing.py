"""Memory that other processes use. The receiver is a process of its own."""

import pickle
import subprocess
import sys

import torch

RECEIVER = """
import ctypes, os, pickle, sys
ctypes.CDLL(os.environ["TORCH_TEST_FOLDER"] + "/libcuda.so.1", ctypes.RTLD_GLOBAL)
import torch, cistern.torch
cistern.torch.enable("native")
torch.cuda.init()
storage = torch.UntypedStorage._new_shared_cuda(*pickle.load(sys.stdin.buffer))
print(storage.nbytes(), torch.tensor([], dtype=torch.uint8, device="cuda").set_(storage).cpu()[-1].item())
"""


def received(tensor):
    sent = pickle.dumps(tensor.untyped_storage()._share_cuda_())
    ran = subprocess.run([sys.executable, "-c", RECEIVER], input=sent, capture_output=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout.split()


def test_another_process_gets_a_block():
    tensor = torch.full((5000,), 7, dtype=torch.uint8).cuda()
    torch.cuda.synchronize()
    assert received(tensor) == [b"5000", b"7"]


def test_another_process_gets_a_block_of_a_mem_pool():
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        tensor = torch.full((5000,), 7, dtype=torch.uint8).cuda()
    torch.cuda.synchronize()
    assert received(tensor) == [b"5000", b"7"]


def test_a_block_without_caching_is_shared_by_its_malloc():
    torch.cuda.memory.caching_allocator_enable(False)
    try:
        tensor = torch.full((5000,), 7, dtype=torch.uint8).cuda()
    finally:
        torch.cuda.memory.caching_allocator_enable(True)
    # The fake runtime opens a handle in the process that made it, too.
    opened = torch.UntypedStorage._new_shared_cuda(*tensor.untyped_storage()._share_cuda_())
    assert opened.nbytes() == 5000
    assert opened.data_ptr() == tensor.data_ptr()


def test_ipc_collect():
    torch.cuda.ipc_collect()
