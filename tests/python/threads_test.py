"""Many threads on one allocator, and one that destroys what others use."""

import threading

import cistern
import pytest
from conftest import MIB


def in_threads(count, work):
    """Runs work(number) in so many threads at once; raises what one of them raised."""
    failures = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:  # noqa: B902
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_threads_share_an_allocator(allocator):
    seen = []

    def work(number):
        with allocator.stream() as stream, allocator.pool() as pool:
            for size in range(1, 200):
                block = allocator.allocate(size * 512, stream)
                with pool.scope():
                    kept = allocator.allocate(1000, stream)
                seen.append(block)
                allocator.free(block)
                allocator.free(kept)

    in_threads(8, work)
    stats = allocator.stats()
    assert len(seen) == 8 * 199
    assert stats.all.allocation == cistern.Stat(0, stats.all.allocation.peak, 2 * len(seen),
                                                2 * len(seen))
    assert stats.all.requested_bytes.current == stats.num_misuses == 0


def test_an_error_is_the_threads_own(allocator):
    barrier = threading.Barrier(4)

    def work(number):
        for _ in range(200):
            wrong = 0x1000 * (number + 1)
            barrier.wait()
            with pytest.raises(cistern.InvalidPointerError, match=f"{wrong:#x}\\b"):
                allocator.free(wrong)

    in_threads(4, work)


def test_of_several_threads_that_end_it_one_does():
    for _ in range(50):
        allocator = cistern.Allocator("sim")
        buffer, pool, stream = allocator.buffer(24 * MIB), allocator.pool(), allocator.stream()
        barrier = threading.Barrier(4)

        def work(number):
            barrier.wait()
            buffer.free()
            pool.destroy()
            stream.destroy()

        in_threads(4, work)
        assert allocator.stats().num_misuses == 0
        in_threads(4, lambda number: allocator.destroy())
        with pytest.raises(cistern.InvalidHandleError):
            allocator.stats()


def test_an_allocator_may_be_destroyed_while_others_use_it():
    for _ in range(20):
        allocator = cistern.Allocator("sim")
        barrier = threading.Barrier(3)

        def work(number):
            barrier.wait()
            if number == 0:
                allocator.destroy()
                return
            try:
                for _ in range(1000):
                    allocator.free(allocator.allocate(1000))
            except cistern.InvalidHandleError:
                pass

        in_threads(3, work)


def test_a_scope_cannot_be_ended_by_another_thread(allocator):
    with allocator.pool() as pool:
        scope = pool.scope()
        scope.__enter__()

        def work(number):
            with pytest.raises(cistern.InvalidStateError):
                scope.__exit__(None, None, None)

        in_threads(1, work)
        from cistern._native import check, lib
        check(lib.cistern_pool_scope_end(pool._owned.value))
