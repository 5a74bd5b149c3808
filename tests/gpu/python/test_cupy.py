"""What CuPy does with memory of Cistern's."""


def test_arrays_come_and_go(run):
    run("""
import cupy, cistern.cupy
cistern.cupy.enable()
x = cupy.zeros(25_000_000)
held = cistern.default(0).stats().all.allocated_bytes
assert held.current >= 200_000_000 and cupy.get_default_memory_pool().total_bytes() == 0
del x
assert cistern.default(0).stats().all.allocated_bytes.current == 0
""", needs="cupy")


def test_streams_have_memory_of_their_own_and_right_results(run):
    run("""
import cupy, cistern.cupy
cistern.cupy.enable()
streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
totals = []
for step in range(200):
    with streams[step % 4]:
        a = cupy.full(1_000_000 + 1000 * (step % 7), step, dtype=cupy.int64)
        totals.append((a.size * step, (a + a - a).sum()))
        del a
for stream in streams:
    stream.synchronize()
for expected, total in totals:
    assert int(total) == expected
stats = cistern.default(0).stats()
assert stats.all.reserved_bytes.peak < 1 << 30, stats.all.reserved_bytes
""", needs="cupy")


def test_what_cupy_calls_libraries_for_runs_too(run):
    run("""
import cupy, cistern.cupy
cistern.cupy.enable()
a = cupy.random.default_rng(1).random((512, 512))
inverse = cupy.linalg.inv(a)
assert float(abs(a @ inverse - cupy.eye(512)).max()) < 1e-6
assert float(abs(cupy.fft.ifft(cupy.fft.fft(a)).real - a).max()) < 1e-9
order = cupy.argsort(a.ravel())
assert bool((cupy.diff(a.ravel()[order]) >= 0).all())
""", needs="cupy")


def test_no_room_is_cupys_own_error_and_the_program_goes_on(run):
    run("""
import cupy, cistern.cupy
cistern.cupy.enable()
free, total = cistern.default(0).memory_info()
try:
    cupy.empty(2 * total, dtype=cupy.uint8)
except cupy.cuda.memory.OutOfMemoryError as error:
    assert isinstance(error.__cause__, cistern.OutOfMemoryError)
else:
    raise AssertionError
assert int(cupy.ones(10).sum()) == 10
""", needs="cupy")


def test_the_per_thread_default_stream_is_refused(run):
    run("""
import cupy, cistern.cupy
cistern.cupy.enable()
with cupy.cuda.Stream.ptds:
    try:
        cupy.empty(1000)
    except cistern.InvalidArgumentError as error:
        assert "per-thread default stream" in str(error)
    else:
        raise AssertionError
""", needs="cupy")


def test_disable_puts_cupys_pool_back(run):
    run("""
import cupy, cistern.cupy
cistern.cupy.enable()
kept = cupy.arange(1000)
cistern.cupy.disable()
other = cupy.arange(1000)
assert cupy.get_default_memory_pool().used_bytes() >= 8000
assert int((kept - other).sum()) == 0
assert cistern.default(0).stats().all.allocation.current >= 1
""", needs="cupy")
