// The driver's calls (ioctl): one function each, on the structures of linux/kfd_ioctl.h.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>

#include <linux/kfd_ioctl.h>

#include "tests/hip/device/clock.hpp"
#include "tests/hip/device/dma_buf.hpp"
#include "tests/hip/device/later_calls.hpp"
#include "tests/hip/device/process.hpp"
#include "tests/hip/device/settings.hpp"
#include "tests/hip/device/topology.hpp"

namespace played {
namespace {

constexpr int kDone = 0;

/// Which GPU of this machine it is; -1 if none.
int gpuOf(std::uint32_t id) {
  const int gpu = int(id) - int(gpuId(0));
  return gpu >= 0 && gpu < settings().gpus ? gpu : -1;
}

template <class T>
std::span<T> arrayOf(std::uint64_t address, std::uint32_t count) {
  return {reinterpret_cast<T*>(address), count};
}

int getVersion(Process&, kfd_ioctl_get_version_args& args) {
  args.major_version = KFD_IOCTL_MAJOR_VERSION;
  args.minor_version = kMinorVersion;
  return kDone;
}

// The apertures of a GPU of AMD's ninth generation: local memory and stacks above the program's
// addresses, all of which are the GPU's.
int getApertures(Process&, kfd_ioctl_get_process_apertures_new_args& args) {
  const int gpus = settings().gpus;
  if (args.num_of_nodes < std::uint32_t(gpus)) args.num_of_nodes = std::uint32_t(gpus);
  const auto apertures = arrayOf<kfd_process_device_apertures>(
      args.kfd_process_device_apertures_ptr, args.num_of_nodes);
  if (apertures.data() == nullptr) return kDone;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    kfd_process_device_apertures& of = apertures[std::size_t(gpu)];
    of = {};
    of.gpu_id = gpuId(gpu);
    of.lds_base = 0x1000000000000;
    of.lds_limit = 0x10000ffffffff;
    of.scratch_base = 0x2000000000000;
    of.scratch_limit = 0x20000ffffffff;
    of.gpuvm_base = 0x200000;
    of.gpuvm_limit = 0x7fffffffffff;
  }
  args.num_of_nodes = std::uint32_t(gpus);
  return kDone;
}

int getClocks(Process&, kfd_ioctl_get_clock_counters_args& args) {
  const std::uint64_t now = nowNs();
  args.gpu_clock_counter = gpuTicks(now);
  args.cpu_clock_counter = now;
  args.system_clock_counter = now;
  args.system_clock_freq = 1'000'000'000;
  return kDone;
}

/// A negative value asks. Pages are never faulted in: what a GPU has not mapped, it may not touch.
int setFaultingIn(Process&, kfd_ioctl_set_xnack_mode_args& args) {
  if (args.xnack_enabled > 0) return EPERM;
  args.xnack_enabled = 0;
  return kDone;
}

// ---- Memory ------------------------------------------------------------------------------------

int allocate(Process& process, kfd_ioctl_alloc_memory_of_gpu_args& args) {
  const int gpu = gpuOf(args.gpu_id);
  if (gpu < 0) return EINVAL;
  if ((args.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0) {
    // Only its address counts: the program maps the driver's file there.
    args.flags |= KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
    args.mmap_offset = args.va_addr;
  }
  Buffer buffer;
  buffer.address = args.va_addr;
  buffer.bytes = args.size;
  buffer.flags = args.flags;
  buffer.gpu = gpu;
  if ((args.flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0)
    buffer.here = reinterpret_cast<std::byte*>(args.mmap_offset);
  args.handle = process.memory.allocate(buffer);
  if (args.handle == 0) return ENOMEM;
  if ((args.flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) == 0)
    args.mmap_offset = process.memory.find(args.handle)->pages->offset();
  return kDone;
}

int freeMemory(Process& process, kfd_ioctl_free_memory_of_gpu_args& args) {
  return process.memory.free(args.handle) ? kDone : EINVAL;
}

/// Sets or clears the bits of the GPUs whose ids are in the array.
template <class Args>
int changeMapping(Process& process, Args& args, bool map) {
  Buffer* const buffer = process.memory.find(args.handle);
  if (buffer == nullptr) return EINVAL;
  for (const std::uint32_t id : arrayOf<std::uint32_t>(args.device_ids_array_ptr, args.n_devices)) {
    const int gpu = gpuOf(id);
    if (gpu < 0) return EINVAL;
    const std::uint32_t bit = 1U << gpu;
    buffer->mapped_on = map ? buffer->mapped_on | bit : buffer->mapped_on & ~bit;
  }
  args.n_success = args.n_devices;
  return kDone;
}
int mapMemory(Process& process, kfd_ioctl_map_memory_to_gpu_args& args) {
  return changeMapping(process, args, true);
}
int unmapMemory(Process& process, kfd_ioctl_unmap_memory_from_gpu_args& args) {
  return changeMapping(process, args, false);
}

int availableMemory(Process& process, AvailableMemory& args) {
  const int gpu = gpuOf(args.gpu_id);
  if (gpu < 0) return EINVAL;
  args.bytes = process.memory.freeVram(gpu);
  return kDone;
}

int exportDmaBuf(Process& process, ExportDmaBuf& args) {
  const Buffer* const buffer = process.memory.find(args.handle);
  if (buffer == nullptr || buffer->pages == nullptr) return EINVAL;
  const int made = exportPages(*buffer->pages);
  if (made < 0) return EMFILE;
  args.descriptor = std::uint32_t(made);
  return kDone;
}

int aboutDmaBuf(Process& process, kfd_ioctl_get_dmabuf_info_args& args) {
  const std::shared_ptr<Pages> pages = importPages(process.memory, int(args.dmabuf_fd));
  if (pages == nullptr) return EINVAL;
  args.size = pages->bytes();
  args.metadata_size = 0;
  args.gpu_id = gpuId(pages->gpu);
  args.flags = pages->flags;
  return kDone;
}

int importDmaBuf(Process& process, kfd_ioctl_import_dmabuf_args& args) {
  const std::shared_ptr<Pages> pages = importPages(process.memory, int(args.dmabuf_fd));
  if (pages == nullptr) return EINVAL;
  args.handle = process.memory.add(pages, args.va_addr);
  return kDone;
}

// ---- Queues ------------------------------------------------------------------------------------

int createQueue(Process& process, kfd_ioctl_create_queue_args& args) {
  const int gpu = gpuOf(args.gpu_id);
  if (gpu < 0 || !process.engine.create(gpu, args)) return EINVAL;
  args.doorbell_offset = doorbellsOf(gpu) + 8 * (args.queue_id % 1024);
  return kDone;
}
int destroyQueue(Process& process, kfd_ioctl_destroy_queue_args& args) {
  return process.engine.destroy(args.queue_id) ? kDone : EINVAL;
}
int updateQueue(Process& process, kfd_ioctl_update_queue_args& args) {
  return process.engine.exists(args.queue_id) ? kDone : EINVAL;
}
int setComputeUnits(Process& process, kfd_ioctl_set_cu_mask_args& args) {
  return process.engine.exists(args.queue_id) ? kDone : EINVAL;
}

// ---- Events ------------------------------------------------------------------------------------

// Each answer must say that there is a page of slots, although the program itself made the page. If
// one did not, the runtime would find no slot for the event, and no signal would raise an
// interrupt: the thread that runs what follows a signal would sleep for ever, and hipStreamDestroy
// with it.
constexpr std::uint64_t kPageOfEvents = std::uint64_t{1} << 62;

int createEvent(Process& process, kfd_ioctl_create_event_args& args) {
  args.event_id = process.events.create(args.event_type, args.auto_reset != 0);
  if (args.event_id == 0) return ENOSPC;
  args.event_page_offset = kPageOfEvents;
  args.event_slot_index = args.event_id;
  args.event_trigger_data = args.event_id;
  return kDone;
}
int destroyEvent(Process& process, kfd_ioctl_destroy_event_args& args) {
  return process.events.destroy(args.event_id) ? kDone : EINVAL;
}
int setEvent(Process& process, kfd_ioctl_set_event_args& args) {
  return process.events.set(args.event_id) ? kDone : EINVAL;
}
int resetEvent(Process& process, kfd_ioctl_reset_event_args& args) {
  return process.events.reset(args.event_id) ? kDone : EINVAL;
}
int waitForEvents(Process& process, kfd_ioctl_wait_events_args& args) {
  args.wait_result = process.events.wait(arrayOf<kfd_event_data>(args.events_ptr, args.num_events),
                                         args.wait_for_all != 0, args.timeout);
  return args.wait_result == KFD_IOC_WAIT_RESULT_FAIL ? EINVAL : kDone;
}

// ---- The table ---------------------------------------------------------------------------------

/// There is nothing to do for it on a played GPU.
template <class Args>
int accept(Process&, Args&) {
  return kDone;
}

struct DriverCall {
  unsigned long request;
  bool takes_lock;  ///< calls on events do not: one may sleep
  int (*function)(Process&, void*);
};

template <class Args, int (*function)(Process&, Args&)>
int erased(Process& process, void* args) {
  return function(process, *static_cast<Args*>(args));
}
template <auto function>
struct Erase;
template <class Args, int (*function)(Process&, Args&)>
struct Erase<function> {
  static constexpr auto call = &erased<Args, function>;
};

constexpr DriverCall kCalls[] = {
    {AMDKFD_IOC_GET_VERSION, true, Erase<getVersion>::call},
    {AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, true, Erase<getApertures>::call},
    {AMDKFD_IOC_GET_CLOCK_COUNTERS, true, Erase<getClocks>::call},
    {AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, true, Erase<allocate>::call},
    {AMDKFD_IOC_FREE_MEMORY_OF_GPU, true, Erase<freeMemory>::call},
    {AMDKFD_IOC_MAP_MEMORY_TO_GPU, true, Erase<mapMemory>::call},
    {AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, true, Erase<unmapMemory>::call},
    {kAvailableMemory, true, Erase<availableMemory>::call},
    {kExportDmaBuf, true, Erase<exportDmaBuf>::call},
    {AMDKFD_IOC_GET_DMABUF_INFO, true, Erase<aboutDmaBuf>::call},
    {AMDKFD_IOC_IMPORT_DMABUF, true, Erase<importDmaBuf>::call},
    {AMDKFD_IOC_CREATE_QUEUE, true, Erase<createQueue>::call},
    {AMDKFD_IOC_DESTROY_QUEUE, true, Erase<destroyQueue>::call},
    {AMDKFD_IOC_UPDATE_QUEUE, true, Erase<updateQueue>::call},
    {AMDKFD_IOC_SET_CU_MASK, true, Erase<setComputeUnits>::call},
    {AMDKFD_IOC_CREATE_EVENT, false, Erase<createEvent>::call},
    {AMDKFD_IOC_DESTROY_EVENT, false, Erase<destroyEvent>::call},
    {AMDKFD_IOC_SET_EVENT, false, Erase<setEvent>::call},
    {AMDKFD_IOC_RESET_EVENT, false, Erase<resetEvent>::call},
    {AMDKFD_IOC_WAIT_EVENTS, false, Erase<waitForEvents>::call},
    {AMDKFD_IOC_ACQUIRE_VM, true, Erase<accept<kfd_ioctl_acquire_vm_args>>::call},
    {AMDKFD_IOC_SET_MEMORY_POLICY, true, Erase<accept<kfd_ioctl_set_memory_policy_args>>::call},
    {AMDKFD_IOC_SET_TRAP_HANDLER, true, Erase<accept<kfd_ioctl_set_trap_handler_args>>::call},
    {AMDKFD_IOC_SET_SCRATCH_BACKING_VA, true,
     Erase<accept<kfd_ioctl_set_scratch_backing_va_args>>::call},
    {AMDKFD_IOC_SET_XNACK_MODE, true, Erase<setFaultingIn>::call},
    {kEnableRuntime, true, Erase<accept<EnableRuntime>>::call},
    {AMDKFD_IOC_GET_TILE_CONFIG, true, Erase<accept<kfd_ioctl_get_tile_config_args>>::call},
};

constexpr std::size_t kMostBytes = 256;
static_assert(std::all_of(std::begin(kCalls), std::end(kCalls), [](const DriverCall& call) {
  return _IOC_SIZE(call.request) <= kMostBytes;
}));

int answer(const DriverCall& call, Process& process, void* argument) {
  if (!call.takes_lock) return call.function(process, argument);
  const std::lock_guard lock(process.mutex);
  return call.function(process, argument);
}

}  // namespace

// A child's descriptor of its parent is bad, as the driver says too. A call that is not in the
// table is one of a driver of AMD's own, which Linux does not have. Calls are known by their
// numbers: later versions of the interface have longer arguments, of which the rest is nothing
// here.
int callDriver(unsigned long request, void* argument) {
  Process* const caller = process();
  int error = caller == nullptr ? EBADF : EINVAL;
  for (const DriverCall& call : kCalls) {
    if (caller == nullptr || _IOC_NR(call.request) != _IOC_NR(request)) continue;
    alignas(8) std::byte whole[kMostBytes] = {};
    const std::size_t bytes = std::min<std::size_t>(_IOC_SIZE(request), _IOC_SIZE(call.request));
    std::memcpy(whole, argument, bytes);
    error = answer(call, *caller, whole);
    std::memcpy(argument, whole, bytes);
  }
  if (error == kDone) return 0;
  PLAYED_TRACE("the driver refuses call 0x%lx: error %d", _IOC_NR(request), error);
  errno = error;
  return -1;
}

}  // namespace played
