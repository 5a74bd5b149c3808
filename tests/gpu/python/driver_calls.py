"""The driver's and NCCL's calls that the tests of registration make, by ctypes. Each raises on a failure."""

import ctypes
import os

import cistern

MIB = 1 << 20
RDMA_CAPABLE = 15  # CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
FILE_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

driver = ctypes.CDLL("libcuda.so.1")
u64, size_t, void_p, c_int = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int


class AccessDesc(ctypes.Structure):
    _fields_ = [("location_type", c_int), ("location_id", c_int), ("flags", c_int)]


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: {status}")


def start():
    """The device's primary context, current in this thread."""
    context = void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)


def stream():
    made = void_p()
    call("cuStreamCreate", ctypes.byref(made), 1)
    return made.value


def attribute(which, address):
    value = ctypes.c_uint(0)
    call("cuPointerGetAttribute", ctypes.byref(value), which, u64(address))
    return value.value & 0xff


def address_range(address):
    base, size = u64(), size_t()
    call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), u64(address))
    return base.value, size.value


def retained(address):
    handle = u64()
    call("cuMemRetainAllocationHandle", ctypes.byref(handle), void_p(address))
    return handle.value


def release(handle):
    call("cuMemRelease", u64(handle))


def behind(address, size):
    """The handle behind each 2 MiB of the range, and the place in it; None where nothing is mapped."""
    handles = []
    for at in range(address & ~(2 * MIB - 1), address + size, 2 * MIB):
        handle = u64()
        if driver.cuMemRetainAllocationHandle(ctypes.byref(handle), void_p(at)) != 0:
            handles.append(None)
            continue
        handles.append((handle.value, at - address_range(at)[0]))
        release(handle.value)
    return handles


def export(handle):
    descriptor = c_int()
    call("cuMemExportToShareableHandle", ctypes.byref(descriptor), u64(handle), FILE_DESCRIPTOR, u64(0))
    return descriptor.value


def imported(descriptor):
    handle = u64()
    call("cuMemImportFromShareableHandle", ctypes.byref(handle), void_p(descriptor), FILE_DESCRIPTOR)
    return handle.value


_mapped = {}


def map_first(handle, length, size):
    """Maps the handle, of `length` bytes, where `size` bytes have room. Nothing lies beyond it."""
    room = (size + 2 * MIB - 1) & ~(2 * MIB - 1)
    base = u64()
    call("cuMemAddressReserve", ctypes.byref(base), size_t(room), size_t(0), u64(0), u64(0))
    call("cuMemMap", base, size_t(length), size_t(0), u64(handle), u64(0))
    access = AccessDesc(1, 0, 3)
    call("cuMemSetAccess", base, size_t(length), ctypes.byref(access), size_t(1))
    release(handle)
    _mapped[base.value] = length, room
    return base.value


def unmap(base):
    length, room = _mapped.pop(base)
    call("cuMemUnmap", u64(base), size_t(length))
    call("cuMemAddressFree", u64(base), size_t(room))


def fill(address, size, value):
    call("cuMemsetD32_v2", u64(address), ctypes.c_uint(value), size_t(size // 4))
    call("cuCtxSynchronize")


def word(address):
    """The 32 bits there; None where the driver refuses."""
    value = ctypes.c_uint()
    status = driver.cuMemcpyDtoH_v2(ctypes.byref(value), u64(address), size_t(4))
    return value.value if status == 0 else None


# ---- NCCL: a communicator of one rank -----------------------------------------------------------


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def nccl_library():
    import nvidia.nccl  # a namespace package of the wheel
    for folder in nvidia.nccl.__path__:
        path = os.path.join(folder, "lib", "libnccl.so.2")
        if os.path.exists(path):
            return ctypes.CDLL(path)
    return ctypes.CDLL("libnccl.so.2")


def nccl_version(nccl):
    version = c_int()
    nccl.ncclGetVersion(ctypes.byref(version))
    return version.value


def nccl_comm(nccl):
    start()
    unique, comm = UniqueId(), void_p()
    nccl.ncclCommInitRank.argtypes = [void_p, c_int, UniqueId, c_int]
    assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0) == 0
    return comm


def nccl_register(nccl, comm, address, size):
    """The status of ncclCommRegister, after which the registration ends."""
    handle = void_p()
    status = nccl.ncclCommRegister(comm, void_p(address), size_t(size), ctypes.byref(handle))
    if status == 0:
        nccl.ncclCommDeregister(comm, handle)
    return status


def nccl_window(nccl, comm, address, size):
    """The status of ncclCommWindowRegister for a symmetric window, which ends too."""
    window = void_p()
    status = nccl.ncclCommWindowRegister(comm, void_p(address), size_t(size), ctypes.byref(window), c_int(1))
    if status == 0:
        nccl.ncclCommWindowDeregister(comm, window)
    return status
