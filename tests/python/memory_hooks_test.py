"""Hooks that hear of memory that comes and goes."""

import threading

import pytest

import cistern
from cistern import MemoryChange

MIB = 1 << 20


@pytest.fixture
def quiet():
    """An allocator whose background thread does not give memory back."""
    with cistern.Allocator("sim", conf="background_thread:false") as allocator:
        yield allocator


class Mirror:
    """The device's memory, as far as the hook has heard."""

    def __init__(self):
        self.ranges = {}
        self.numbers = []

    def __call__(self, notice):
        self.numbers.append(notice.number)
        if notice.change is MemoryChange.MAPPED:
            assert notice.address not in self.ranges
            self.ranges[notice.address] = notice.size
        else:
            assert self.ranges.pop(notice.address) == notice.size

    @property
    def size(self):
        return sum(self.ranges.values())


def test_a_hook_hears_of_memory_that_comes_and_goes(quiet):
    mirror = Mirror()
    hook = quiet.attach_memory_hook(mirror)
    assert "MemoryHook" in repr(hook)
    block = quiet.allocate(24 * MIB)
    assert mirror.size == quiet.stats().all.reserved_bytes.current >= 24 * MIB
    assert any(start <= block < start + size for start, size in mirror.ranges.items())
    later = []
    with quiet.attach_memory_hook(later.append):
        assert sum(notice.size for notice in later) == mirror.size
        assert all(notice.was_there for notice in later)
        quiet.free(block)
        quiet.empty_cache()
    assert mirror.size == 0
    assert mirror.numbers == list(range(1, len(mirror.numbers) + 1))
    with pytest.raises(cistern.InvalidStateError, match="0 holds and 1 hooks"):
        quiet.destroy()
    hook.detach()
    hook.detach()
    quiet.free(quiet.allocate(24 * MIB))
    assert mirror.size == 0


def test_a_hook_may_call_every_method_and_detach_itself(quiet):
    heard = []

    def once(notice):
        heard.append(notice)
        quiet.free(quiet.allocate(3 * MIB))
        quiet.empty_cache()
        hooks.pop().detach()

    hooks = [quiet.attach_memory_hook(once)]
    quiet.free(quiet.allocate(24 * MIB))
    quiet.empty_cache()
    assert len(heard) == 1
    assert quiet.stats().all.reserved_bytes.current == 0


def test_an_exception_of_a_hook_is_printed(quiet, monkeypatch):
    printed = []
    monkeypatch.setattr("sys.unraisablehook", printed.append)

    def fails(notice):
        raise RuntimeError("on purpose")

    with quiet.attach_memory_hook(fails):
        quiet.free(quiet.allocate(24 * MIB))
        quiet.empty_cache()
    assert quiet.stats().all.reserved_bytes.current == 0
    assert printed and all("on purpose" in str(error.exc_value) for error in printed)


def test_what_cannot_be_a_hook(quiet):
    with pytest.raises(TypeError, match="a function of a MemoryNotice is needed, not int"):
        quiet.attach_memory_hook(3)
    quiet.destroy()
    with pytest.raises(cistern.InvalidHandleError):
        quiet.attach_memory_hook(print)


def test_threads_allocate_while_a_hook_hears():
    mirror = Mirror()
    with cistern.Allocator("sim", conf="limit:64MiB") as allocator:
        with allocator.attach_memory_hook(mirror):
            def work(step):
                for turn in range(60):
                    try:
                        allocator.free(allocator.allocate((1 + (turn * step) % 24) * MIB))
                    except cistern.OutOfMemoryError:
                        pass
                    if turn % 7 == 0:
                        allocator.empty_cache()

            threads = [threading.Thread(target=work, args=(step,)) for step in (3, 5, 7, 11)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            allocator.empty_cache()
            assert mirror.size == allocator.stats().all.reserved_bytes.current
        assert mirror.numbers == list(range(1, len(mirror.numbers) + 1))


def test_a_thread_that_waits_for_hooks_lets_python_run():
    """A thread that holds the interpreter's lock is refused only after hooks have heard of what goes, and they
    need that lock. PyTorch allocates so."""
    import ctypes
    from cistern import _places
    locked = ctypes.PyDLL(str(_places.library()))  # keeps the interpreter's lock during a call
    locked.cistern_allocate.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    with cistern.Allocator("sim", conf="limit:64MiB,background_thread:false") as allocator:
        entered = threading.Event()
        waits = threading.Event()

        def slow(notice):
            if notice.change is MemoryChange.UNMAPPING and not entered.is_set():
                entered.set()
                waits.wait()

        with allocator.attach_memory_hook(slow):
            allocator.free(allocator.allocate(60 * MIB))
            emptying = threading.Thread(target=allocator.empty_cache)
            emptying.start()
            entered.wait()
            waits.set()  # the hook returns when it has the interpreter's lock, which this thread keeps
            block = ctypes.c_void_p()
            other = allocator.stream()
            assert locked.cistern_allocate(allocator._owned.value, 60 * MIB, other.handle,
                                           ctypes.byref(block)) == 0
            emptying.join()
            allocator.free(block.value)
            other.destroy()
