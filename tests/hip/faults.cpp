// libhip_faults.so: stands before AMD's runtime, and has the faults of other versions and of other
// GPUs that HIP_FAULTS names (a comma between two), or that hipFaultsSet sets. All else is the
// runtime's own. A program names it in CISTERN_HIP_LIBRARY.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <hip/hip_runtime_api.h>

#define SHOWN extern "C" __attribute__((visibility("default")))

namespace {

enum Which {
  kNull,
  kZeroing,
  kLate,
  kHeld,
  kHost,
  kDescriptors,
  kGranule,
  kCopy,
  kCapture,
  kAccess
};

struct Fault {
  const char* name;
  const char* source;
  const char* does;
};

// In the order of Which.
constexpr Fault kFaults[] = {
    {"null_reserve", "HIP 5.2.3 of Debian 12", "hipMemAddressReserve succeeds with null"},
    {"zeroing", "ROCm/rocm-systems 10943", "a wait zeroes a pool's memory, unless it keeps all"},
    {"late_pages", "ROCm/rocm-systems 11693",
     "the first kernel's writes to a new mapping are lost"},
    {"held_release", "ROCm/legacy-rocm-build 6021", "a page lives as long as its reservation"},
    {"host_access", "ROCm/rocm-systems 11185", "hipMemSetAccess refuses the host"},
    {"descriptors", "ROCm/rocm-systems 10604", "hipMemCreate takes a descriptor for good"},
    {"granule", "fzyzcjy/torch_memory_saver 109", "4 KiB; hipMemMap alone checks a size"},
    {"copy", "intel/llvm 22671", "a copy or fill may not leave its reservation"},
    {"capture", "ROCm/legacy-rocm-build 6681",
     "a capture refuses new memory, though it is relaxed"},
    {"access", "HIP 7.2.4 of Debian experimental", "hipMemSetAccess refuses a page that is mapped"},
};

struct State {
  State() { set(std::getenv("HIP_FAULTS")); }

  void set(const char* names) {
    on.clear();
    struck = 0;
    fresh.clear();
    std::string_view rest = names == nullptr ? "" : names;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      add(name);
    }
  }
  void add(std::string_view name) {
    for (std::size_t i = 0; i < std::size(kFaults); ++i) {
      if (name == kFaults[i].name) return void(on.insert(Which(i)));
    }
    (void)std::fprintf(stderr, "HIP_FAULTS: no fault is named %s. There are:\n",
                       std::string(name).c_str());
    for (const Fault& fault : kFaults)
      (void)std::fprintf(stderr, "  %s: %s (%s)\n", fault.name, fault.does, fault.source);
    std::abort();
  }
  /// The reservation that the address lies in, or the end.
  auto reservationOf(const void* address) {
    auto it = reservations.upper_bound(std::size_t(address));
    if (it == reservations.begin()) return reservations.end();
    --it;
    return std::size_t(address) < it->first + it->second ? it : reservations.end();
  }
  bool leavesReservation(const void* address, std::size_t bytes) {
    const auto in = reservationOf(address);
    return in != reservations.end() && std::size_t(address) + bytes > in->first + in->second;
  }

  std::mutex mutex;
  std::set<Which> on;
  unsigned struck = 0;
  int captures = 0;
  std::map<std::size_t, std::size_t> reservations, mapped, fresh;  // addresses, and their bytes
  std::map<std::size_t, hipMemGenericAllocationHandle_t> pages;  // by the address of their mapping
  std::map<hipMemGenericAllocationHandle_t, std::size_t> homes;  // the reservation of the last
  std::multimap<std::size_t, hipMemGenericAllocationHandle_t> held;  // by their reservation
  std::map<void*, std::size_t> pooled;
  std::set<hipMemPool_t> keeping;
};

// Never destroyed, because programs free in their last destructors.
State& state() {
  static State* const made = new State;
  return *made;
}

/// Whether the fault is on, and the case is there. Notes that it struck.
bool strikes(Which which, bool there = true) {
  State& all = state();
  if (!there || !all.on.contains(which)) return false;
  ++all.struck;
  return true;
}

void* runtimesOwn(const char* name) {
  static void* const runtime = dlopen(FAULTY_RUNTIME, RTLD_LAZY);
  return dlsym(runtime, name);
}

#define RUNTIMES(name) reinterpret_cast<decltype(&::name)>(runtimesOwn(#name))

void zeroPools() {
  if (!state().on.contains(kZeroing)) return;
  const std::lock_guard lock(state().mutex);
  for (const auto& [memory, bytes] : state().pooled) {
    if (strikes(kZeroing)) (void)RUNTIMES(hipMemset)(memory, 0, bytes);
  }
}

}  // namespace

SHOWN void hipFaultsSet(const char* names) {
  const std::lock_guard lock(state().mutex);
  state().set(names);
}
SHOWN unsigned hipFaultsStruck() {
  const std::lock_guard lock(state().mutex);
  return state().struck;
}

// ---- Addresses and pages -----------------------------------------------------------------------

SHOWN hipError_t hipMemAddressReserve(void** address, size_t bytes, size_t alignment, void* wanted,
                                      unsigned long long flags) {
  const std::lock_guard lock(state().mutex);
  *address = nullptr;
  if (strikes(kNull)) return hipSuccess;
  const hipError_t error = RUNTIMES(hipMemAddressReserve)(address, bytes, alignment, wanted, flags);
  if (error == hipSuccess && *address != nullptr)
    state().reservations[std::size_t(*address)] = bytes;
  return error;
}
SHOWN hipError_t hipMemAddressFree(void* address, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  const auto [first, last] = state().held.equal_range(std::size_t(address));
  for (auto it = first; it != last; ++it) (void)RUNTIMES(hipMemRelease)(it->second);
  state().held.erase(first, last);
  state().reservations.erase(std::size_t(address));
  return RUNTIMES(hipMemAddressFree)(address, bytes);
}
SHOWN hipError_t hipMemGetAllocationGranularity(size_t* bytes, const hipMemAllocationProp* of,
                                                hipMemAllocationGranularity_flags which) {
  const std::lock_guard lock(state().mutex);
  const hipError_t error = RUNTIMES(hipMemGetAllocationGranularity)(bytes, of, which);
  if (error == hipSuccess && strikes(kGranule)) *bytes = 4096;
  return error;
}
SHOWN hipError_t hipMemCreate(hipMemGenericAllocationHandle_t* page, size_t bytes,
                              const hipMemAllocationProp* of, unsigned long long flags) {
  const std::lock_guard lock(state().mutex);
  if (strikes(kCapture, state().captures > 0)) return hipErrorNotSupported;
  if (strikes(kDescriptors) && open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
    return hipErrorOutOfMemory;
  if (strikes(kGranule, bytes % 4096 != 0)) bytes += 4096 - bytes % 4096;
  return RUNTIMES(hipMemCreate)(page, bytes, of, flags);
}
SHOWN hipError_t hipMemRelease(hipMemGenericAllocationHandle_t page) {
  const std::lock_guard lock(state().mutex);
  const auto home = state().homes.find(page);
  const bool is_held = home != state().homes.end() && strikes(kHeld);
  if (is_held) state().held.emplace(home->second, page);
  if (home != state().homes.end()) state().homes.erase(home);
  return is_held ? hipSuccess : RUNTIMES(hipMemRelease)(page);
}
SHOWN hipError_t hipMemMap(void* address, size_t bytes, size_t offset,
                           hipMemGenericAllocationHandle_t page, unsigned long long flags) {
  const std::lock_guard lock(state().mutex);
  if (strikes(kGranule, bytes % 4096 != 0)) return hipErrorInvalidValue;
  const hipError_t error = RUNTIMES(hipMemMap)(address, bytes, offset, page, flags);
  if (error != hipSuccess) return error;
  state().mapped[std::size_t(address)] = bytes;
  const auto in = state().reservationOf(address);
  if (in != state().reservations.end()) state().homes[page] = in->first;
  return error;
}
SHOWN hipError_t hipMemUnmap(void* address, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  state().mapped.erase(std::size_t(address));
  state().fresh.erase(std::size_t(address));
  return RUNTIMES(hipMemUnmap)(address, bytes);
}
SHOWN hipError_t hipMemSetAccess(void* address, size_t bytes, const hipMemAccessDesc* who,
                                 size_t count) {
  const std::lock_guard lock(state().mutex);
  for (size_t i = 0; i < count; ++i) {
    if (strikes(kHost, who[i].location.type != hipMemLocationTypeDevice))
      return hipErrorInvalidValue;
  }
  if (strikes(kAccess)) return hipErrorInvalidValue;
  const hipError_t error = RUNTIMES(hipMemSetAccess)(address, bytes, who, count);
  const auto end = state().mapped.lower_bound(std::size_t(address) + bytes);
  if (error != hipSuccess || !state().on.contains(kLate)) return error;
  state().fresh.insert(state().mapped.lower_bound(std::size_t(address)), end);
  return error;
}

// ---- Work --------------------------------------------------------------------------------------

SHOWN hipError_t hipLaunchKernel(const void* function, dim3 blocks, dim3 threads, void** arguments,
                                 size_t shared, hipStream_t stream) {
  const hipError_t error =
      RUNTIMES(hipLaunchKernel)(function, blocks, threads, arguments, shared, stream);
  const std::lock_guard lock(state().mutex);
  for (const auto& [address, bytes] : state().fresh) {
    if (strikes(kLate))
      (void)RUNTIMES(hipMemsetAsync)(reinterpret_cast<void*>(address), 0, bytes, stream);
  }
  state().fresh.clear();
  return error;
}
SHOWN hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                hipStream_t stream) {
  const std::lock_guard lock(state().mutex);
  if (strikes(kCopy,
              state().leavesReservation(to, bytes) || state().leavesReservation(from, bytes)))
    return hipErrorInvalidValue;
  return RUNTIMES(hipMemcpyAsync)(to, from, bytes, kind, stream);
}
SHOWN hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream) {
  const std::lock_guard lock(state().mutex);
  if (strikes(kCopy, state().leavesReservation(to, bytes))) return hipErrorInvalidValue;
  return RUNTIMES(hipMemsetAsync)(to, value, bytes, stream);
}
SHOWN hipError_t hipStreamSynchronize(hipStream_t stream) {
  const hipError_t error = RUNTIMES(hipStreamSynchronize)(stream);
  zeroPools();
  return error;
}
SHOWN hipError_t hipDeviceSynchronize() {
  const hipError_t error = RUNTIMES(hipDeviceSynchronize)();
  zeroPools();
  return error;
}

// ---- Captures, and the driver's pools ----------------------------------------------------------

SHOWN hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  const hipError_t error = RUNTIMES(hipStreamBeginCapture)(stream, mode);
  const std::lock_guard lock(state().mutex);
  state().captures += error == hipSuccess;
  return error;
}
SHOWN hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  const std::lock_guard lock(state().mutex);
  state().captures -= state().captures > 0;
  return RUNTIMES(hipStreamEndCapture)(stream, graph);
}
SHOWN hipError_t hipMalloc(void** memory, size_t bytes) {
  {
    const std::lock_guard lock(state().mutex);
    if (strikes(kCapture, state().captures > 0)) return hipErrorNotSupported;
  }
  using Malloc = hipError_t(void**, size_t);
  return reinterpret_cast<Malloc*>(runtimesOwn("hipMalloc"))(memory, bytes);
}
SHOWN hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr which, void* value) {
  const std::lock_guard lock(state().mutex);
  if (which == hipMemPoolAttrReleaseThreshold && *static_cast<unsigned long long*>(value) == ~0ULL)
    state().keeping.insert(pool);
  return RUNTIMES(hipMemPoolSetAttribute)(pool, which, value);
}
SHOWN hipError_t hipMallocFromPoolAsync(void** memory, size_t bytes, hipMemPool_t pool,
                                        hipStream_t stream) {
  using Malloc = hipError_t(void**, size_t, hipMemPool_t, hipStream_t);
  const hipError_t error =
      reinterpret_cast<Malloc*>(runtimesOwn("hipMallocFromPoolAsync"))(memory, bytes, pool, stream);
  const std::lock_guard lock(state().mutex);
  if (error == hipSuccess && !state().keeping.contains(pool)) state().pooled[*memory] = bytes;
  return error;
}
SHOWN hipError_t hipFreeAsync(void* memory, hipStream_t stream) {
  const std::lock_guard lock(state().mutex);
  state().pooled.erase(memory);
  return RUNTIMES(hipFreeAsync)(memory, stream);
}
