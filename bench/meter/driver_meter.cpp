// libcistern_driver_meter.so: preloaded into a program, it times every call that the program makes
// to the driver's virtual memory management, whoever makes it. Both PyTorch and Cistern get these
// functions from the CUDA runtime by name (cudaGetDriverEntryPoint…); here they get them wrapped.
#include "bench/meter/driver_meter.hpp"

#include <atomic>
#include <chrono>
#include <cstring>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<std::uint64_t> calls[2], nanoseconds[2];

// The program's main thread is the caller; whatever else there is, the background.
void note(Clock::time_point since) {
  static const auto process = static_cast<long>(getpid());
  thread_local const int account = syscall(SYS_gettid) == process ? 0 : 1;
  const auto took = Clock::now() - since;
  calls[account].fetch_add(1, std::memory_order_relaxed);
  nanoseconds[account].fetch_add(
      std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()),
      std::memory_order_relaxed);
}

/// One driver function: the real one, and one that times it.
template <auto Id, class... Arguments>
struct Timed {
  static inline CUresult (*real)(Arguments...) = nullptr;
  static CUresult call(Arguments... arguments) {
    const Clock::time_point since = Clock::now();
    const CUresult result = real(arguments...);
    note(since);
    return result;
  }
  static void wrap(void** function) {
    real = reinterpret_cast<CUresult (*)(Arguments...)>(*function);
    *function = reinterpret_cast<void*>(&call);
  }
};

using Create =
    Timed<0, CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long>;
using Map = Timed<1, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long>;
using SetAccess = Timed<2, CUdeviceptr, size_t, const CUmemAccessDesc*, size_t>;
using Unmap = Timed<3, CUdeviceptr, size_t>;
using Release = Timed<4, CUmemGenericAllocationHandle>;

std::atomic<bool> exportable{true};

CUresult create(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* how,
                unsigned long long flags) {
  if (exportable.load(std::memory_order_relaxed)) return Create::call(handle, bytes, how, flags);
  CUmemAllocationProp plain = *how;
  plain.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  return Create::call(handle, bytes, &plain, flags);
}

void wrapIfKnown(const char* name, void** function) {
  if (function == nullptr || *function == nullptr) return;
  if (std::strcmp(name, "cuMemCreate") == 0) {
    Create::wrap(function);
    *function = reinterpret_cast<void*>(&create);
  }
  if (std::strcmp(name, "cuMemMap") == 0) Map::wrap(function);
  if (std::strcmp(name, "cuMemSetAccess") == 0) SetAccess::wrap(function);
  if (std::strcmp(name, "cuMemUnmap") == 0) Unmap::wrap(function);
  if (std::strcmp(name, "cuMemRelease") == 0) Release::wrap(function);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function,
                                             unsigned int version, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
  using Function = decltype(&cudaGetDriverEntryPointByVersion);
  static const auto real = next<Function>("cudaGetDriverEntryPointByVersion");
  const cudaError_t error = real(name, function, version, flags, result);
  if (error == cudaSuccess) wrapIfKnown(name, function);
  return error;
}

void cisternMeterExportable(bool asked) { exportable.store(asked); }

void cisternMeterRead(CisternMeter* meter) {
  for (int account = 0; account < 2; ++account) {
    meter->calls[account] = calls[account].load();
    meter->nanoseconds[account] = nanoseconds[account].load();
  }
}
}
