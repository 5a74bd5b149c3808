"""Numba's memory manager on Cistern, as far as Numba goes without a GPU; tests/gpu/python has the rest."""

import pytest

pytest.importorskip("numba.cuda.cudadrv.driver")

BEGIN = """
import cistern
from numba import cuda
import cistern.numba

class Context:  # a real one needs a driver
    class device:
        id = 0

context = Context()
manager = cistern.numba.MemoryManager(context=context)
manager.initialize()
allocator = cistern.default(0)
held = lambda: allocator.stats().all.allocation.current
"""


@pytest.fixture
def ran(run):
    """Runs a program on a shared allocator that is simulated, in a process of its own."""
    return lambda program, **more: run(BEGIN + program, CISTERN_BACKEND="sim", **more)


def test_numba_takes_the_manager(ran):
    ran("""
from numba.cuda.cudadrv import driver
cistern.numba.enable()
assert driver._memory_manager is cistern.numba.MemoryManager
assert issubclass(cistern.numba.MemoryManager, cuda.BaseCUDAMemoryManager)
assert manager.interface_version == 1
""")


def test_numba_finds_the_manager_by_the_modules_name(ran):
    ran("""
from numba.cuda.cudadrv import driver
driver._ensure_memory_manager()
assert driver._memory_manager is cistern.numba.MemoryManager
""", NUMBA_CUDA_MEMORY_MANAGER="cistern.numba")


def test_memory_goes_with_the_last_pointer_to_it(ran):
    ran("""
pointer = manager.memalloc(1000)
assert pointer.size == 1000 and held() == 1
assert allocator.block_size(int(pointer.device_pointer)) == 1024
view = pointer.view(512)
assert int(view.device_pointer) == int(pointer.device_pointer) + 512
del pointer
assert held() == 1
del view
assert held() == 0
""")


def test_information_and_reset(ran):
    ran("""
free, total = manager.get_memory_info()
assert 0 < free <= total
pointer = manager.memalloc(64 << 20)
assert manager.get_memory_info().free <= free - (64 << 20)
manager.reset()
assert held() == 0 and manager.get_memory_info().free == free
try:
    manager.get_ipc_handle(None)
except NotImplementedError as error:
    assert "copy it" in str(error)
""")


def test_no_room_is_a_memory_error(ran):
    ran("""
allocator.limit = 64 << 20
try:
    manager.memalloc(65 << 20)
except MemoryError as error:
    assert isinstance(error, cistern.OutOfMemoryError) and held() == 0
else:
    raise AssertionError
""")
