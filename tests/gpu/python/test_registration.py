"""Memory that other libraries register: what the driver, another process and NCCL see of it, by door. Each
part runs in a process of its own. CISTERN_TRANSFERS: how many transfers and rounds, 300 unless told."""

import os

from conftest import TOP

TRANSFERS = os.environ.get("CISTERN_TRANSFERS", "300")
DRIVER = (TOP / "tests/gpu/python/driver_calls.py").parent

HEAD = f"""
import sys
sys.path.insert(0, {str(DRIVER)!r})
from driver_calls import *
TRANSFERS = {TRANSFERS}
"""

RDMA = HEAD + """
def capable(address, size):
    return all(attribute(RDMA_CAPABLE, at) == 1 for at in (address, address + size - 1))

with cistern.Allocator("cuda") as allocator:
    blocks = [("default", allocator.allocate(30 * MIB), 30 * MIB), ("small", allocator.allocate(512), 512)]
    pools = {"pool": allocator.pool(), "one_handle": allocator.pool(one_handle=True)}
    for name, pool in pools.items():
        blocks.append((name, pool.allocate(30 * MIB), 30 * MIB))
    for name, address, size in blocks:
        print(name, capable(address, size))
        allocator.free(address)
    for pool in pools.values():
        pool.destroy()
"""

# As UCX's cuda_ipc does: the range of the address, and the handle that lies there first, are all that the
# other process gets.
TRANSFER = HEAD + """
import random, signal, socket, traceback

def child(work, end, others):
    process = os.fork()
    if process == 0:
        signal.alarm(240)
        try:
            others.close()
            start()
            work(end)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return process

def exporter(to, one_handle):
    random.seed(70)
    with cistern.Allocator("cuda", conf="page_size:2MiB") as allocator:
        pool = allocator.pool(one_handle=one_handle)
        for number in range(TRANSFERS):
            size = int(2 ** random.uniform(10, 30)) & ~3
            block = pool.allocate(size)
            fill(block, size, number)
            handle = retained(block)
            base, length = address_range(block)
            descriptor = export(handle)
            release(handle)
            message = b"".join(value.to_bytes(8, "little") for value in (block - base, length, size, number))
            socket.send_fds(to, [message], [descriptor])
            os.close(descriptor)
            if to.recv(1) != b"k":
                break
            allocator.free(block)
        pool.destroy()

def importer(of):
    random.seed(71)
    wrong = right = 0
    for _ in range(TRANSFERS):
        message, (descriptor,), _, _ = socket.recv_fds(of, 32, 1)
        offset, length, size, number = (int.from_bytes(message[at:at + 8], "little") for at in (0, 8, 16, 24))
        handle = imported(descriptor)
        os.close(descriptor)
        at = map_first(handle, length, max(length, offset + size))
        places = [0, size - 4] + [random.randrange(size // 4) * 4 for _ in range(30)]
        good = all(word(at + offset + place) == number for place in places)
        right, wrong = right + good, wrong + (not good)
        unmap(at)
        of.send(b"k")
    return right, wrong

for one_handle in (True, False):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    read, write = os.pipe()
    processes = [child(lambda end: exporter(end, one_handle), theirs, ours),
                 child(lambda end: os.write(write, " ".join(map(str, importer(end))).encode()), ours, theirs)]
    ours.close(), theirs.close(), os.close(write)
    assert [os.waitpid(process, 0)[1] for process in processes] == [0, 0]
    print("one_handle" if one_handle else "plain", os.read(read, 100).decode())
"""

CACHE = HEAD + """
import random

for holds in (True, False):
    random.seed(72)
    found = stale = 0
    cache = {}  # address -> size, the pages when it was registered, and the hold
    with cistern.Allocator("cuda", conf="limit:300MiB") as allocator:
        other = stream()
        for _ in range(TRANSFERS):
            size = random.randint(1, 8) * 2 * MIB
            buffer = allocator.allocate(size)
            if buffer in cache and cache[buffer][0] >= size:
                known, pages, _ = cache[buffer]
                found += 1
                stale += behind(buffer, known) != pages
            else:
                if buffer not in cache and len(cache) == 4:
                    gone = cache.pop(next(iter(cache)))
                    if gone[2] is not None:
                        gone[2].release()
                if buffer in cache and cache[buffer][2] is not None:
                    cache[buffer][2].release()
                cache[buffer] = size, behind(buffer, size), allocator.hold(buffer, size) if holds else None
            plain = allocator.allocate(random.randint(10, 100) * MIB)
            allocator.free(buffer)
            allocator.free(plain)
            allocator.free(allocator.allocate(random.randint(200, 236) * MIB, other))
        for _, _, hold in cache.values():
            if hold is not None:
                hold.release()
        cache.clear()
    print("held" if holds else "free", found, stale)
"""

NCCL = HEAD + """
nccl = nccl_library()
comm = nccl_comm(nccl)
print("version", nccl_version(nccl))
with cistern.Allocator("cuda") as allocator:
    pools = {"pool": allocator.pool(), "one_handle": allocator.pool(one_handle=True)}
    doors = {"default": allocator.allocate, **{name: pool.allocate for name, pool in pools.items()}}
    for name, allocate in doors.items():
        for size in (MIB, 64 * MIB):
            block = allocate(size, alignment=4096)
            print(name, size // MIB, nccl_register(nccl, comm, block, size), nccl_window(nccl, comm, block, size))
            allocator.free(block)
    for pool in pools.values():
        pool.destroy()
"""


def rows(text):
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()}


def test_memory_is_capable_of_rdma_through_each_door(run):
    printed = rows(run(RDMA, needs="cistern"))
    assert printed == {name: ["True"] for name in ("default", "small", "pool", "one_handle")}


def test_a_process_that_opens_one_handle_sees_all_of_a_block_of_a_one_handle_pool(run):
    printed = rows(run(TRANSFER, needs="cistern"))
    assert printed["one_handle"] == [TRANSFERS, "0"]
    assert int(printed["plain"][1]) > 0


def test_a_cache_of_registrations_stays_true_while_it_holds(run):
    printed = rows(run(CACHE, needs="cistern"))
    assert int(printed["held"][0]) > 0 and printed["held"][1] == "0"
    assert int(printed["free"][1]) > 0


def test_nccl_registers_memory_by_each_door(run):
    lines = [line.split() for line in run(NCCL, needs="nvidia.nccl").splitlines()]
    assert len(lines) == 7
    assert all(answers == ["0", "0"] for _, _, *answers in lines[1:])
