"""An allocator of one device. docs/python.md has a program, and describes lifetimes."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, Optional, SupportsIndex, Tuple

from . import _arguments
from ._arguments import Conf, StreamLike
from ._location import Location
from ._native import SimConfig, check, lib, made
from ._observed import Observed
from ._owned import Owned, check_block, free_address, handed_out, state
from .buffer import Buffer
from .capture import Capture
from .errors import CisternError, InvalidStateError
from .pinned import Pinned
from .hold import Hold
from .memory_hook import MemoryHook, MemoryNotice
from .pool import Pool
from .stream import Stream


def _stays(handle: int) -> int:
    """Ends a shared allocator: it does nothing, as such an allocator lives as long as the
    process."""
    return 0


class Allocator(Observed):
    """A caching allocator on device `ordinal` of a backend: "cuda", "hip", "sim", or "auto", the first
    of these that the machine has.

    `conf` holds options (docs/options.md), as a text or a mapping; None means those of
    $CISTERN_CONF. Any thread may call its methods. Sizes are in bytes. Addresses are ints, and
    those of device memory are never dereferenced here. As a context manager it is destroyed at the
    end.

    Raises InvalidArgumentError, InvalidOptionError, NoDeviceError, DeviceError. Each method raises
    InvalidHandleError after destroy(), InvalidStateError in a child of fork, InvalidArgumentError
    for a number that is out of range, and TypeError for an argument of a wrong type. A call that
    fails has changed nothing.
    """

    _device: str

    def __init__(self, backend: str = "auto", ordinal: SupportsIndex = 0,
                 conf: Optional[Conf] = None) -> None:
        number = _arguments.whole(ordinal, "ordinal", 2**31 - 1)
        handle = made(lib.cistern_allocator_create, _arguments.text(backend, "backend"), number,
                      _arguments.conf(conf))
        self._own(handle, f"device {number}")
        self._device = f"{self.backend} {self._device}"

    @classmethod
    def sim(cls, *, capacity: SupportsIndex = 0, granularity: SupportsIndex = 0,
            gpu_lag_ns: SupportsIndex = 0, ordinal: SupportsIndex = 0, virtual_memory: bool = True,
            conf: Optional[Conf] = None) -> Allocator:
        """One on a new simulated device, which needs no GPU.

        `capacity`: bytes of device memory (0: 80 GiB); `granularity`: bytes of a page, a power of two
        (0: 2 MiB); `gpu_lag_ns`: queued work begins so much virtual time later; `ordinal`: 0 to 7;
        `virtual_memory`: False for a device that has segments alone, and no pages; `conf`: options,
        as for Allocator. InvalidArgumentError, InvalidOptionError.
        """
        config = SimConfig(size=ctypes.sizeof(SimConfig),
                           capacity=_arguments.whole(capacity, "capacity"),
                           granularity=_arguments.whole(granularity, "granularity"),
                           gpu_lag_ns=_arguments.whole(gpu_lag_ns, "gpu_lag_ns"),
                           ordinal=_arguments.whole(ordinal, "ordinal", 2**31 - 1),
                           no_virtual_memory=not _arguments.flag(virtual_memory, "virtual_memory"))
        self = cls.__new__(cls)
        self._own(made(lib.cistern_allocator_create_sim, ctypes.byref(config),
                       _arguments.conf(conf)), f"sim device {config.ordinal}")
        return self

    def _own(self, handle: int, device: str, shared: bool = False) -> None:
        self._device = device
        self._shared = shared
        end = _stays if shared else lib.cistern_allocator_destroy
        self._owned = Owned("an allocator", handle, end, handle)

    # ---- Memory ----------------------------------------------------------------------------------

    def allocate(self, size: SupportsIndex, stream: StreamLike = None, *,
                 alignment: SupportsIndex = 512) -> int:
        """The address of `size` bytes for use on `stream`, at a multiple of `alignment`: a power of two
        up to 2 MiB. 0 for 0 bytes. Freed by free(). OutOfMemoryError says who holds what."""
        handle = self._owned.value
        wanted, on = _arguments.whole(size, "size"), _arguments.stream(stream)
        if alignment == 512:
            address = made(lib.cistern_allocate, handle, wanted, on)
        else:
            address = made(lib.cistern_allocate_aligned, handle, wanted,
                           _arguments.whole(alignment, "alignment"), on)
        return handed_out(lib.cistern_free, handle, address)

    def buffer(self, size: SupportsIndex, stream: StreamLike = None) -> Buffer:
        """`size` bytes for use on `stream`, as an object that frees itself. OutOfMemoryError as of
        allocate()."""
        return Buffer(self._owned, self.allocate(size, stream))

    def free(self, address: SupportsIndex) -> None:
        """Takes a block back, also one of a pool. Its own stream may reuse it at once, in stream
        order. Others may reuse it when the work queued on that stream so far is complete. 0 is a
        no-op. InvalidPointerError if it is not the address of an allocated block."""
        free_address(lib.cistern_free, self._owned.value, _arguments.whole(address, "address"))

    def record_stream(self, address: SupportsIndex, stream: StreamLike) -> None:
        """Says that the block at `address` is also used on `stream`. After its free it is reusable only
        when the work that was queued there before the free is complete. InvalidPointerError if it is
        not the address of an allocated block."""
        self._about(lib.cistern_record_stream, address, _arguments.stream(stream))

    def register_stream(self, stream: StreamLike) -> None:
        """Says that `stream` may use memory, although no block is allocated or recorded on it.
        Memory that another stream has freed goes to a third stream only when the work queued on
        this one by the free is complete, too. The methods allocate and record_stream do the same
        for the stream that they name."""
        check(lib.cistern_register_stream(self._owned.value, _arguments.stream(stream)))

    def forget_stream(self, stream: StreamLike) -> None:
        """Says that the program is about to destroy the stream, and has queued all its work."""
        check(lib.cistern_forget_stream(self._owned.value, _arguments.stream(stream)))

    def empty_cache(self) -> None:
        """Returns wholly free memory to the device."""
        check(lib.cistern_empty_cache(self._owned.value))

    def hold(self, address: SupportsIndex, size: SupportsIndex) -> Hold:
        """Holds the `size` bytes from `address` on until the release, for a library that registers them:
        behind each address stays the memory that lies there now, also when blocks there are freed and
        others are placed. It neither moves nor sleeps, and does not go back to the device; whole pages and
        segments do so. Any of it may be allocated or free. InvalidArgumentError where no memory lies in
        some of the range, or another segment begins. InvalidStateError while its pool sleeps."""
        return Hold(self._owned, lib.cistern_hold, self._owned.value, _arguments.whole(address, "address"),
                    _arguments.whole(size, "size"))

    def attach_memory_hook(self, hook: Callable[[MemoryNotice], Any]) -> MemoryHook:
        """Calls `hook` with each range of device addresses that gets memory behind it, and with each that is
        about to lose it, for a program that registers memory with other libraries. It hears first of all that
        is there. The device unmaps a range when all hooks have returned. One thread at a time calls them, in
        the order of the changes, and it may be any thread. Every method may be called inside; memory that it
        would unmap stays until the hook is done. An exception is printed; the hook stays attached, and the memory comes or
        goes all the same. A hook may not wait for a thread that allocates. TypeError if `hook` cannot be called."""
        return MemoryHook(self._owned, hook)

    def block_size(self, address: SupportsIndex) -> int:
        """The usable bytes of the allocated block at `address`. InvalidPointerError if there is none."""
        size = ctypes.c_size_t()
        self._about(lib.cistern_block_size, address, ctypes.byref(size))
        return size.value

    def location_of(self, address: SupportsIndex) -> Location:
        """The place of the memory of the allocated block at `address`: Location.HOST if any of it is host
        memory. InvalidPointerError if there is no block."""
        location = ctypes.c_int()
        self._about(lib.cistern_location_of, address, ctypes.byref(location))
        return Location(location.value)

    def host_bytes_in(self, address: SupportsIndex) -> int:
        """The bytes of the allocated block at `address` that lie in the host's memory. A block of overflow has what
        was left of the device for the rest. InvalidPointerError if there is no block."""
        bytes = ctypes.c_uint64()
        self._about(lib.cistern_host_bytes_in, address, ctypes.byref(bytes))
        return bytes.value

    def base_allocation(self, address: SupportsIndex) -> Tuple[int, int]:
        """Address and bytes of the segment around the allocated block at `address`.
        InvalidPointerError if there is none."""
        base, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._about(lib.cistern_base_allocation, address, ctypes.byref(base), ctypes.byref(size))
        return base.value or 0, size.value

    def _about(self, call: Callable[..., int], address: SupportsIndex, *arguments: Any) -> None:
        """A call about a block."""
        handle, number = self._owned.value, _arguments.whole(address, "address")
        check_block(call(handle, number, *arguments), "cistern_free", handle, number)

    # ---- What belongs to it ----------------------------------------------------------------------

    def stream(self) -> Stream:
        """A new stream of the device, for programs that call no runtime of their own."""
        return Stream(self._owned)

    @property
    def pinned(self) -> Pinned:
        """Pinned host memory, for copies on its streams. It goes with the allocator."""
        return Pinned(self._owned)

    def pool(self, *, use_on_oom: bool = False, no_split: bool = False,
             location: Location = Location.DEVICE, one_handle: bool = False,
             limit: Optional[SupportsIndex] = None) -> Pool:
        """A new pool: memory that is kept apart. `use_on_oom`: the default pool takes memory from it
        rather than be out of memory; `no_split`: each block has a segment of its own; `one_handle`: the
        same, and the segment is one handle of the driver, for libraries that look at the first handle of
        a range only (2 MiB at least a block). `location`: Location.HOST for a pool in the host's memory,
        which the device reaches over the bus. That is an InvalidStateError with any of the three, and
        where the device makes no such memory. `limit`: the most bytes of blocks in use (Pool.set_limit)."""
        return Pool(self._owned, use_on_oom=use_on_oom, no_split=no_split, location=location,
                    one_handle=one_handle, limit=limit)

    def capture(self, stream: StreamLike, pool: Optional[Pool] = None) -> Capture:
        """Provides the memory for the capture that records `stream`. Memory that is allocated on
        it, and on streams that join its capture, comes from `pool`, or else from a pool of the
        capture's own. That memory stays in place until the release. InvalidArgumentError unless
        `stream` is being captured."""
        return Capture(self._owned, _arguments.stream(stream), pool)

    # ---- Its end ---------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Gives everything back to the device, including allocated blocks: their addresses are no
        longer valid. InvalidStateError while it has pools or captures, and for a shared
        allocator."""
        if self._shared:
            raise InvalidStateError(f"the shared allocator of {self._device} stays until the process "
                                    "ends")
        self._owned.end()

    def __exit__(self, *error: object) -> None:
        if self._shared:
            return
        try:
            self._owned.end()
        except InvalidStateError:
            if error[0] is None:  # else the failed code holds a pool, and its error says more
                raise

    def __repr__(self) -> str:
        try:
            bytes_of = self.stats().all
        except CisternError:
            return f"<cistern.Allocator on {self._device}{state(self._owned)}>"
        return (f"<cistern.Allocator on {self._device}: {bytes_of.allocated_bytes.current:,} bytes "
                f"allocated, {bytes_of.reserved_bytes.current:,} reserved>")


_shared: Dict[int, Allocator] = {}


def default(device: SupportsIndex = 0) -> Allocator:
    """The allocator of a device that the whole process shares, C++ code included (cistern::allocator).

    It is made at the first call, with the options of $CISTERN_CONF, and stays until the process
    ends. Each call returns the same object. Without a GPU its device is simulated, unless
    $CISTERN_BACKEND names another. Raises InvalidArgumentError, InvalidOptionError, NoDeviceError,
    DeviceError.
    """
    number = _arguments.whole(device, "device", 2**31 - 1)
    if number not in _shared:
        self = Allocator.__new__(Allocator)
        self._own(made(lib.cistern_default_allocator, number), f"device {number}", shared=True)
        _shared.setdefault(number, self)  # several threads get the same handle
    return _shared[number]
