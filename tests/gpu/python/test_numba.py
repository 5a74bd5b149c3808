"""What Numba does with memory of Cistern's."""


def test_streams_of_numba_use_what_was_freed_only_when_it_is_complete(run):
    run("""
import numpy
from numba import cuda
import cistern.numba
cistern.numba.enable()

@cuda.jit
def grow(values, rounds):
    i = cuda.grid(1)
    if i < values.size:
        for _ in range(rounds):
            values[i] += 1

count, streams = 1 << 20, [cuda.stream() for _ in range(4)]
results = []
for step in range(64):
    stream = streams[step % 4]
    values = cuda.to_device(numpy.full(count, step), stream=stream)
    grow[count // 256, 256, stream](values, 2000)
    host = cuda.pinned_array(count, dtype=numpy.int64)
    values.copy_to_host(host, stream=stream)
    results.append((step, host))
    del values          # its copy may not have run
cuda.synchronize()
for step, host in results:
    assert (host == step + 2000).all(), step
stats = cistern.default(0).stats()
assert stats.all.allocation.allocated == 64 and stats.all.allocation.current == 0, stats.all.allocation
""", needs="numba")


def test_reset_ends_what_is_there(run):
    run("""
import numpy
from numba import cuda
import cistern.numba
cistern.numba.enable()
kept = cuda.to_device(numpy.arange(1 << 20))
assert cistern.default(0).stats().all.allocation.current == 1
cuda.current_context().reset()
assert cistern.default(0).stats().all.allocation.current == 0
""", needs="numba")
