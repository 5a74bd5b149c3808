"""CUDA tensors that processes pass to each other by torch.multiprocessing, both under Cistern; and
one GPU's memory in the reach of another, where there are two."""

import gc
import os
import subprocess
import sys
import time

import pytest
import torch
import torch.multiprocessing as mp

import cistern.torch

cistern.torch.enable("native")  # a child imports this file, and nothing else of the tests

MIB = 1 << 20


# ---- What the child does ---------------------------------------------------------------------------


def add_one(tensor):
    tensor.add_(1)
    torch.cuda.synchronize()
    return float(tensor.double().sum())


def add_one_to_all(tensors):
    return [add_one(tensor) for tensor in tensors]


def read_later(tensor):
    time.sleep(0.5)
    return float(tensor.double().sum())


def make(count, elements):
    made = [torch.full((elements,), float(i), device="cuda") for i in range(count)]
    torch.cuda.synchronize()
    return made


def allocated():
    gc.collect()
    torch.cuda.ipc_collect()
    torch.cuda.empty_cache()
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved()


def worker(inbox, outbox):
    cistern.torch.enable("native")
    assert torch.cuda.memory.get_allocator_backend() == "cistern"
    while True:
        job = inbox.get()
        if job is None:
            return
        function, *arguments = job
        try:
            outbox.put((True, function(*arguments)))
        except Exception as error:  # what it says is the parent's to judge
            outbox.put((False, f"{type(error).__name__}: {error}"))
        del job, arguments


class Child:
    def __init__(self):
        context = mp.get_context("spawn")
        self.inbox, self.outbox = context.Queue(), context.Queue()
        self.process = context.Process(target=worker, args=(self.inbox, self.outbox), daemon=True)
        self.process.start()

    def begin(self, function, *arguments):
        self.inbox.put((function, *arguments))

    def end(self):
        done, result = self.outbox.get(timeout=120)
        assert done, result
        return result

    def __call__(self, function, *arguments):
        self.begin(function, *arguments)
        return self.end()

    def close(self):
        self.inbox.put(None)
        self.process.join(60)
        assert self.process.exitcode == 0


@pytest.fixture(scope="module")
def child():
    one = Child()
    yield one
    one.close()


def comes_down_to(most):
    """Whether this process has no more than that allocated, once the child has let go of what it had."""
    for _ in range(250):
        gc.collect()
        torch.cuda.ipc_collect()
        if torch.cuda.memory_allocated() <= most:
            return True
        time.sleep(0.02)
    return False


# ---- Passing ---------------------------------------------------------------------------------------


def test_a_tensor_is_written_there_and_read_here(child):
    tensor = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
    before = float(tensor.double().sum())
    assert child(add_one, tensor) == before + tensor.numel()
    assert float(tensor.double().sum()) == before + tensor.numel()


def test_a_tensor_of_the_child_is_read_here(child):
    made = child(make, 3, 1000)
    assert [tensor.unique().tolist() for tensor in made] == [[0.0], [1.0], [2.0]]
    made[1].fill_(5)
    del made


def test_a_view_at_an_offset(child):
    base = torch.zeros(64 * MIB, dtype=torch.uint8, device="cuda")
    view = base[5 * MIB : 6 * MIB].view(torch.int32)[::2]
    assert child(add_one, view) == view.numel()
    assert int(base.view(torch.int32).sum()) == view.numel()


def test_a_hundred_tensors(child):
    tensors = [
        torch.full((1 + 977 * i,), float(i), dtype=torch.float32, device="cuda") for i in range(100)
    ]
    got = child(add_one_to_all, tensors)
    assert got == [(i + 1.0) * (1 + 977 * i) for i in range(100)]
    assert all((tensor == i + 1).all().item() for i, tensor in enumerate(tensors))


def test_one_of_many_pages(child):
    large = torch.zeros(1 << 30, dtype=torch.uint8, device="cuda")
    assert child(add_one, large) == 1 << 30
    assert large[-1].item() == 1 and large[0].item() == 1


def test_the_same_tensor_twice(child):
    tensor = torch.zeros(1000, device="cuda")
    assert child(add_one, tensor) == 1000
    assert child(add_one, tensor) == 2000


def test_a_parameter_and_its_gradient(child):
    layer = torch.nn.Linear(64, 64).cuda()
    layer(torch.ones(8, 64, device="cuda")).sum().backward()
    with torch.no_grad():
        child(add_one, layer.weight.grad)
        before = float(layer.weight.detach().double().sum())
        assert child(add_one, layer.weight.detach()) == pytest.approx(before + 64 * 64)


def test_memory_takes_no_descriptor_before_it_is_shared(child):
    allocated_before = torch.cuda.memory_allocated()
    before = len(os.listdir("/proc/self/fd"))
    tensor = torch.zeros(1 << 30, dtype=torch.uint8, device="cuda")
    assert len(os.listdir("/proc/self/fd")) == before
    child(add_one, tensor)
    del tensor
    child(allocated)
    assert comes_down_to(allocated_before)
    torch.cuda.empty_cache()
    assert len(os.listdir("/proc/self/fd")) <= before + 8  # PyTorch keeps a few of its own


# ---- Who ends first --------------------------------------------------------------------------------


def test_the_sender_lets_go_first(child):
    before = torch.cuda.memory_allocated()
    tensor = torch.full((10 * MIB,), 2.0, device="cuda")
    child.begin(read_later, tensor)
    time.sleep(0.2)
    del tensor
    gc.collect()
    other = torch.full((10 * MIB,), 9.0, device="cuda")  # must not come to lie in its place
    assert child.end() == 2.0 * 10 * MIB
    del other
    child(allocated)  # by now it has let go
    assert comes_down_to(before)


def test_the_receiver_lets_go_first(child):
    tensor = torch.ones(10 * MIB, device="cuda")
    assert child(add_one, tensor) == 2.0 * 10 * MIB
    child(allocated)
    assert (tensor == 2).all().item()


def test_all_memory_comes_back(child):
    before_there, _ = child(allocated)
    torch.cuda.empty_cache()
    before, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    for _ in range(20):
        child(add_one_to_all, [torch.zeros(2 * MIB, device="cuda") for _ in range(8)])
        child(make, 4, 3 * MIB)
    child(allocated)
    assert comes_down_to(before)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= reserved
    assert child(allocated)[0] <= before_there


def test_a_child_that_is_killed_takes_nothing_along():
    other = Child()
    tensor = torch.zeros(1000, device="cuda")
    assert other(add_one, tensor) == 1000
    other.process.kill()
    other.process.join(60)
    tensor.add_(1)
    assert float(tensor.sum()) == 2000


# ---- What cannot be passed, and other memory -------------------------------------------------------


def send_back(tensor):
    return tensor


def test_what_was_received_is_not_sent_on(child):
    child.begin(send_back, torch.zeros(1000, device="cuda"))
    # The queue's own thread meets the error in the child, and prints it: nothing is sent.
    with pytest.raises(Exception):
        child.outbox.get(timeout=5)
    assert child(add_one, torch.zeros(10, device="cuda")) == 10


def test_memory_of_cudamalloc_is_passed_too(child):
    torch.cuda.memory.caching_allocator_enable(False)
    try:
        tensor = torch.zeros(MIB, device="cuda")
    finally:
        torch.cuda.memory.caching_allocator_enable(True)
    assert child(add_one, tensor) == MIB


SEGMENTS = """
import torch, sys
sys.path.insert(0, {folder!r})
import test_sharing
if __name__ == "__main__":
    child = test_sharing.Child()
    tensors = [torch.zeros(1000 + i, device="cuda") for i in range(20)]
    assert child(test_sharing.add_one_to_all, tensors) == [1000.0 + i for i in range(20)]
    assert all((tensor == 1).all().item() for tensor in tensors)
    made = child(test_sharing.make, 3, 100)
    assert made[2].sum().item() == 200
    del made
    child.close()
"""


def test_segments_are_passed_too(tmp_path):
    script = tmp_path / "segments.py"
    script.write_text(SEGMENTS.format(folder=os.path.dirname(__file__)))
    ran = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "CISTERN_CONF": "backing:segments"},
    )
    assert ran.returncode == 0, ran.stderr


# ---- Two GPUs --------------------------------------------------------------------------------------

two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")


@two_gpus
def test_tensors_go_between_devices():
    here = torch.arange(1 << 20, dtype=torch.float32, device="cuda:0")
    there = here.to("cuda:1")
    assert torch.equal(there.cpu(), here.cpu())
    odd = here[::3].to("cuda:1")  # a kernel that reaches over
    assert torch.equal(odd.cpu(), here.cpu()[::3])
    later = torch.ones(64 * MIB, device="cuda:0")  # mapped after the peer was let in
    assert float(later[::5].to("cuda:1").sum()) == len(range(0, 64 * MIB, 5))


@two_gpus
def test_two_processes_train_and_share_as_under_pytorchs_own():
    program = os.path.join(os.path.dirname(__file__), "two_gpus.py")
    results = []
    for ipc in ("1", "0"):  # how NCCL shares its buffers: pages of its own, or cudaMalloc's by handle
        for mode in ([], ["native"]):
            ran = subprocess.run(
                [sys.executable, program, *mode], capture_output=True, text=True, timeout=120, check=False,
                env={**os.environ, "NCCL_CUMEM_ENABLE": ipc},
            )
            assert ran.returncode == 0, ran.stderr
            results.append([line for line in ran.stdout.splitlines() if line.startswith("RESULT")])
    assert results[0] and all(result == results[0] for result in results)
