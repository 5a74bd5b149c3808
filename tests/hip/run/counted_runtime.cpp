// libamdhip64_counted.so: stands before AMD's runtime in the programs of tests/preload, and offers
// what these ask of a fake beyond HIP: how often a function of the runtime was called, and whether
// two uses of memory overlapped. All else is the runtime's own.
//
// Cistern takes it for the runtime, because of its name; what it does not have is found behind it.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include "tests/hip/device/kernel_table.h"

#define SHOWN extern "C" __attribute__((visibility("default")))

namespace {

// ---- The runtime behind it ---------------------------------------------------------------------

/// Not dlsym as a program calls it: `cistern run` answers that.
void* runtimesOwn(const char* name) {
  using Look = void* (*)(void*, const char*);
  static const auto look = reinterpret_cast<Look>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  static void* const runtime = dlopen(COUNTED_RUNTIME, RTLD_LAZY);
  return look(runtime, name);
}

#define RUNTIMES(name) reinterpret_cast<decltype(&::name)>(runtimesOwn(#name))

// ---- Counting ----------------------------------------------------------------------------------

struct Counts {
  std::mutex mutex;
  std::map<std::string, unsigned long long> calls;
  unsigned long long all = 0;
  std::string during;
  void (*meanwhile)() = nullptr;
};

// Never destroyed, because programs free in their last destructors.
Counts& counts() {
  static Counts* const made = new Counts;
  return *made;
}

void count(const char* name) {
  void (*meanwhile)() = nullptr;
  {
    const std::lock_guard lock(counts().mutex);
    ++counts().calls[name];
    ++counts().all;
    if (counts().during == name) meanwhile = std::exchange(counts().meanwhile, nullptr);
  }
  if (meanwhile != nullptr) meanwhile();
}

// ---- Uses of memory ----------------------------------------------------------------------------

/// A kernel's parameters, as the code object lays them out.
struct Use {
  std::uint64_t address, bytes;
  std::uint32_t writes;
  std::uint64_t nanoseconds;
};
bool overlap(const Use& a, const Use& b) {
  const bool apart = a.address + a.bytes <= b.address || b.address + b.bytes <= a.address;
  return !apart && (a.writes != 0 || b.writes != 0);
}

std::mutex uses_mutex;
std::vector<Use> uses;  // of the kernels that have begun and not ended
std::atomic<unsigned> races{0};

const Use& useOf(const PlayedLaunch* launch) {
  return *reinterpret_cast<const Use*>(launch->arguments);
}

std::uint64_t beginUse(const PlayedLaunch* launch) {
  const Use& use = useOf(launch);
  const std::lock_guard lock(uses_mutex);
  for (const Use& other : uses) races += overlap(use, other);
  uses.push_back(use);
  return use.nanoseconds;
}

void endUse(const PlayedLaunch* launch) {
  const Use& use = useOf(launch);
  (void)launch->at(launch, use.address, use.bytes, int(use.writes));  // a fault if it is gone
  const std::lock_guard lock(uses_mutex);
  for (auto it = uses.begin(); it != uses.end(); ++it) {
    if (std::memcmp(&*it, &use, sizeof(use)) != 0) continue;
    uses.erase(it);
    return;
  }
}

// ---- The kernel --------------------------------------------------------------------------------

constexpr const char* kKernel = "useMemory";
constexpr const char* kSource =
    "extern \"C\" __global__ void useMemory(char*, unsigned long, int, unsigned long long) {}";

std::vector<char> compiled() {
  hiprtcProgram program = nullptr;
  std::size_t bytes = 0;
  (void)RUNTIMES(hiprtcCreateProgram)(&program, kSource, "use.hip", 0, nullptr, nullptr);
  (void)RUNTIMES(hiprtcCompileProgram)(program, 0, nullptr);
  (void)RUNTIMES(hiprtcGetCodeSize)(program, &bytes);
  std::vector<char> code(bytes);
  (void)RUNTIMES(hiprtcGetCode)(program, code.data());
  (void)RUNTIMES(hiprtcDestroyProgram)(&program);
  return code;
}

/// As hipcc's code does it before main.
struct FatBinary {
  std::uint32_t magic = 0x48495046;  // "HIPF"
  std::uint32_t version = 1;
  const void* binary = nullptr;
  void* unused = nullptr;
};

const void* registered() {
  if (auto* stand_in = reinterpret_cast<PlayedKernelFunction*>(dlsym(RTLD_DEFAULT, "playedKernel")))
    stand_in(kKernel, endUse, beginUse);
  static const std::vector<char> code = compiled();
  static const FatBinary fat{.binary = code.data()};
  const auto binary =
      reinterpret_cast<void** (*)(const void*)>(runtimesOwn("__hipRegisterFatBinary"));
  const auto function =
      reinterpret_cast<void (*)(void**, const void*, const char*, const char*, unsigned, void*,
                                void*, void*, void*, int*)>(runtimesOwn("__hipRegisterFunction"));
  function(binary(&fat), &kKernel, kKernel, kKernel, ~0U, nullptr, nullptr, nullptr, nullptr,
           nullptr);
  return &kKernel;
}

}  // namespace

SHOWN const void* hipTestKernel() {
  static const void* const kernel = registered();
  return kernel;
}
SHOWN unsigned hipFakeRaces() {
  (void)RUNTIMES(hipDeviceSynchronize)();
  return races.exchange(0);
}
SHOWN unsigned long long hipFakeCalls(const char* name) {
  const std::lock_guard lock(counts().mutex);
  return *name == '\0' ? counts().all : counts().calls[name];
}
SHOWN void hipFakeDuring(const char* name, void (*call)()) {
  const std::lock_guard lock(counts().mutex);
  counts().during = name;
  counts().meanwhile = call;
}
/// There is no virtual time here: what a program finds of it is that nothing took any.
SHOWN unsigned long long hipFakeNow() { return 0; }
SHOWN hipError_t hipFakeWaitEvent(hipStream_t stream, hipEvent_t event) {
  return RUNTIMES(hipStreamWaitEvent)(stream, event, 0);
}
SHOWN hipError_t hipFakeLaunch(hipStream_t stream, void* address, std::size_t bytes,
                               unsigned long long nanoseconds) {
  count("hipFakeLaunch");
  int writes = 1;
  void* parameters[] = {&address, &bytes, &writes, &nanoseconds};
  return RUNTIMES(hipLaunchKernel)(hipTestKernel(), dim3(1), dim3(1), parameters, 0, stream);
}

// ---- Functions that are counted ----------------------------------------------------------------

#define COUNTED(name, parameters, arguments) \
  SHOWN hipError_t name parameters {         \
    count(#name);                            \
    return RUNTIMES(name) arguments;         \
  }

COUNTED(hipFree, (void* memory), (memory))
COUNTED(hipFreeAsync, (void* memory, hipStream_t stream), (memory, stream))
COUNTED(hipMemGetInfo, (size_t * free_bytes, size_t* total), (free_bytes, total))
COUNTED(hipStreamQuery, (hipStream_t stream), (stream))
COUNTED(hipStreamSynchronize, (hipStream_t stream), (stream))
COUNTED(hipStreamDestroy, (hipStream_t stream), (stream))
COUNTED(hipEventDestroy, (hipEvent_t event), (event))
COUNTED(hipEventQuery, (hipEvent_t event), (event))
COUNTED(hipEventRecord, (hipEvent_t event, hipStream_t stream), (event, stream))
COUNTED(hipEventSynchronize, (hipEvent_t event), (event))
COUNTED(hipLaunchKernel,
        (const void* function, dim3 blocks, dim3 threads, void** parameters, size_t shared,
         hipStream_t stream),
        (function, blocks, threads, parameters, shared, stream))
COUNTED(hipMemcpyDtoDAsync,
        (hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream),
        (to, from, bytes, stream))
COUNTED(hipMemsetAsync, (void* to, int value, size_t bytes, hipStream_t stream),
        (to, value, bytes, stream))

SHOWN hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
  count("hipStreamWaitEvent");
  static const bool forgets = std::getenv("FAKE_FORGETS_WAITS") != nullptr;
  return forgets ? hipSuccess : RUNTIMES(hipStreamWaitEvent)(stream, event, flags);
}
SHOWN hipError_t hipDeviceSynchronize() {
  count("hipDeviceSynchronize");
  const hipError_t result = RUNTIMES(hipDeviceSynchronize)();
  count("the end of hipDeviceSynchronize");
  return result;
}

// The header has templates of these names, too.
SHOWN hipError_t countedMalloc(void** memory, size_t bytes) __asm__("hipMalloc");
SHOWN hipError_t countedMalloc(void** memory, size_t bytes) {
  count("hipMalloc");
  using Malloc = hipError_t(void**, size_t);
  return reinterpret_cast<Malloc*>(runtimesOwn("hipMalloc"))(memory, bytes);
}
SHOWN hipError_t countedMallocAsync(void** memory, size_t bytes,
                                    hipStream_t stream) __asm__("hipMallocAsync");
SHOWN hipError_t countedMallocAsync(void** memory, size_t bytes, hipStream_t stream) {
  count("hipMallocAsync");
  using MallocAsync = hipError_t(void**, size_t, hipStream_t);
  return reinterpret_cast<MallocAsync*>(runtimesOwn("hipMallocAsync"))(memory, bytes, stream);
}
