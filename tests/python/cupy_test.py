"""CuPy's memory from Cistern, as far as CuPy goes without a GPU; tests/gpu/python has the rest."""

import pytest

cupy = pytest.importorskip("cupy")

BEGIN = """
import cistern, cupy
import cistern.cupy
allocator = cistern.default(0)
held = lambda: allocator.stats().all.allocation.current
memory = lambda size, stream=0: cistern.cupy._memory(size, 0, stream)
"""


@pytest.fixture
def ran(run):
    """Runs a program on a shared allocator that is simulated, in a process of its own."""
    return lambda program, **more: run(BEGIN + program, CISTERN_BACKEND="sim", **more)


def test_enable_and_disable_change_what_cupy_allocates_by(ran):
    ran("""
before = cupy.cuda.get_allocator()
assert not cistern.cupy.enabled()
for _ in range(2):
    cistern.cupy.enable()
    assert cistern.cupy.enabled() and cupy.cuda.get_allocator() is cistern.cupy.malloc
for _ in range(2):
    cistern.cupy.disable()
    assert not cistern.cupy.enabled() and cupy.cuda.get_allocator() == before
""")


def test_enable_within_another_choice_changes_nothing(ran):
    ran("""
with cupy.cuda.using_allocator(cistern.cupy.malloc):
    try:
        cistern.cupy.enable()
    except ValueError:
        assert not cistern.cupy.enabled()
    else:
        raise AssertionError
""")


def test_memory_goes_with_the_last_pointer_to_it(ran):
    ran("""
pointer = memory(1000)
assert pointer.mem.size == 1000 and pointer.mem.device_id == 0 and held() == 1
view = pointer + 512
del pointer
assert held() == 1
del view
assert held() == 0
assert memory(0).ptr == 0 and held() == 0
""")


def test_memory_is_of_the_current_stream(ran):
    ran("""
with allocator.stream() as one, allocator.stream() as other:
    kept = [memory(1000, stream.handle) for stream in (one, other)]
    streams = {block["address"]: block["stream"] for segment in allocator.snapshot()["segments"]
               for block in segment["blocks"] if block["state"] == "allocated"}
    assert [streams[hex(pointer.ptr)] for pointer in kept] == [hex(one.handle), hex(other.handle)]
    del kept
""")


def test_no_room_is_cupys_own_error_and_garbage_is_collected_first(ran):
    ran("""
allocator.limit = 64 << 20
try:
    memory(65 << 20)
except cupy.cuda.memory.OutOfMemoryError as error:
    assert isinstance(error.__cause__, cistern.OutOfMemoryError)
    assert "68,157,440 bytes" in str(error)
else:
    raise AssertionError
cycle = [memory(40 << 20)]
cycle.append(cycle)
del cycle
memory(40 << 20)
""")


def test_arrays_that_are_there_at_the_end_of_the_program_do_no_harm(ran):
    ran("kept = [memory(1 << 20) for _ in range(10)]; kept.append(kept)")
