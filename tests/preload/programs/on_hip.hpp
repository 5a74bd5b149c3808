// A program on the fake HIP runtime, or on AMD's with libamdhip64_counted before it
// (tests/hip/run). It is linked to that. See gpu_names.hpp.
#pragma once

#include "tests/preload/fake_hip/fake_hip.hpp"

namespace gpu {

using Stream = hipStream_t;
using Event = hipEvent_t;
using Graph = hipGraph_t;
using Thread = int;  ///< what another thread has to take over

// Calls are counted by these names.
constexpr const char* kMalloc = "hipMalloc";
constexpr const char* kMallocAsync = "hipMallocAsync";
constexpr const char* kRecord = "hipEventRecord";
constexpr const char* kWait = "hipStreamWaitEvent";
constexpr const char* kLaunch = "hipLaunchKernel";
constexpr const char* kSynchronize = "hipDeviceSynchronize";
constexpr const char* kTake = "hipMalloc";
constexpr const char* kGiveBack = "hipFree";
constexpr const char* kEndOfSynchronize = "the end of hipDeviceSynchronize";
constexpr bool kHasPages = false;
constexpr bool kGivesNothing = true;  ///< where nothing is asked for

/// A function of the loaded runtime's, by name.
template <class Function>
Function* found(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

inline void begin() {}
inline Thread thisThread() { return 0; }
inline Thread makeContext() { return 0; }  ///< a device is its context
inline void endContext(Thread) {}
inline Thread otherDevice() { return 1; }
inline std::size_t deviceOf(Thread thread) { return std::size_t(thread); }
inline void takeOver(Thread thread) { EXPECT(hipSetDevice(thread) == hipSuccess); }

inline void** out(Memory* memory) { return reinterpret_cast<void**>(memory); }

inline int malloc(Memory* memory, std::size_t bytes) { return hipMalloc(out(memory), bytes); }
inline int free(void* memory) { return hipFree(memory); }
inline int mallocAsync(Memory* memory, std::size_t bytes, Stream stream) {
  return hipMallocAsync(out(memory), bytes, stream);
}
inline int freeAsync(Memory memory, Stream stream) { return hipFreeAsync(memory, stream); }
/// In the order of the thread's own default stream, by a spelling of its own where there is one.
inline int mallocOwn(Memory* memory, std::size_t bytes) {
  return hipMallocAsync(out(memory), bytes, hipStreamPerThread);
}
inline int freeOwn(Memory memory) { return hipFreeAsync(memory, hipStreamPerThread); }
using Pool = hipMemPool_t;
inline Pool defaultPool(int device = 0) {
  Pool pool = nullptr;
  EXPECT(hipDeviceGetDefaultMemPool(&pool, device) == hipSuccess);
  return pool;
}
inline Pool makePool(int device = 0) {
  hipMemPoolProps wanted{};
  wanted.location.id = device;
  wanted.location.type = hipMemLocationTypeDevice;
  Pool pool = nullptr;
  EXPECT(hipMemPoolCreate(&pool, &wanted) == hipSuccess);
  return pool;
}
/// One that the program has made, of the thread's device.
inline Pool ownPool(Thread thread) {
  static const Pool pools[] = {makePool(0), makePool(1)};
  return pools[deviceOf(thread)];
}
inline int mallocFrom(Memory* memory, std::size_t bytes, Pool pool, Stream stream) {
  return hipMallocFromPoolAsync(out(memory), bytes, pool, stream);
}
inline int destroyPool(Pool pool) { return hipMemPoolDestroy(pool); }
inline int setPool(Pool pool) { return hipDeviceSetMemPool(0, pool); }
/// The same by the newer function, which the header may not declare.
inline int setPoolOfMemory(Pool pool) {
  hipMemLocation device{};
  device.type = hipMemLocationTypeDevice;
  using Set = hipError_t(hipMemLocation*, hipMemAllocationType, hipMemPool_t);
  return found<Set>("hipMemSetMemPool")(&device, hipMemAllocationTypePinned, pool);
}
inline int letDeviceUse(Pool pool, int device) {
  hipMemAccessDesc allowed{};
  allowed.location.type = hipMemLocationTypeDevice;
  allowed.location.id = device;
  allowed.flags = hipMemAccessFlagsProtReadWrite;
  return hipMemPoolSetAccess(pool, &allowed, 1);
}
inline int getOfPool(Pool pool, int attribute, void* out) {
  return hipMemPoolGetAttribute(pool, hipMemPoolAttr(attribute), out);
}
inline int setOfPool(Pool pool, int attribute, void* value) {
  return hipMemPoolSetAttribute(pool, hipMemPoolAttr(attribute), value);
}
inline int trimPool(Pool pool, std::size_t keep) { return hipMemPoolTrimTo(pool, keep); }
inline int mallocManaged(Memory* memory, std::size_t bytes) {
  return hipMallocManaged(out(memory), bytes, 1);
}
inline int memoryInfo(std::size_t* free_bytes, std::size_t* total) {
  return hipMemGetInfo(free_bytes, total);
}
inline int reset() { return hipDeviceReset(); }
inline int setDevice(int device) { return hipSetDevice(device); }

inline int createStream(Stream* stream, unsigned flags) {
  return hipStreamCreateWithFlags(stream, flags);
}
inline int destroyStream(Stream stream) { return hipStreamDestroy(stream); }
inline int synchronize() { return hipDeviceSynchronize(); }
inline int synchronizeStream(Stream stream) { return hipStreamSynchronize(stream); }
inline int createEvent(Event* event) {
  return hipEventCreateWithFlags(event, hipEventDisableTiming);
}
inline int recordEvent(Event event, Stream stream) { return hipEventRecord(event, stream); }
/// FAKE_FORGETS_WAITS does not take it away.
inline int waitEvent(Stream stream, Event event) { return hipFakeWaitEvent(stream, event); }

/// The kernel that uses memory; the fake needs none.
inline const void* kernel() {
  static auto* const registered = found<const void*()>("hipTestKernel");
  return registered == nullptr ? nullptr : registered();
}
inline int launch(Stream stream, Memory memory, std::size_t bytes, unsigned long long time) {
  int writes = 1;
  void* parameters[] = {&memory, &bytes, &writes, &time};
  return hipLaunchKernel(kernel(), dim3(1), dim3(1), parameters, 0, stream);
}
/// By a function that nobody knows.
inline int launchUnknown(Stream stream, Memory memory, std::size_t bytes, unsigned long long time) {
  static const auto queue = found<decltype(hipFakeLaunch)>("hipFakeLaunch");
  return queue(stream, memory, bytes, time);
}
inline int set(Stream stream, Memory memory, std::size_t bytes) {
  return hipMemsetAsync(memory, 0, bytes, stream);
}
inline int copy(Stream stream, Memory to, Memory from, std::size_t bytes) {
  return hipMemcpyDtoDAsync(to, from, bytes, stream);
}

inline int beginCapture(Stream stream, int mode) {
  return hipStreamBeginCapture(stream, hipStreamCaptureMode(mode));
}
inline int endCapture(Stream stream, Graph* graph) { return hipStreamEndCapture(stream, graph); }
inline int exchangeMode(int mode) {
  auto exchanged = hipStreamCaptureMode(mode);
  return hipThreadExchangeStreamCaptureMode(&exchanged);
}
inline int launchGraph(Graph graph, Stream stream) {
  hipGraphExec_t ready = nullptr;
  EXPECT(hipGraphInstantiateWithFlags(&ready, graph, 0) == hipSuccess);
  return hipGraphLaunch(ready, stream);
}

/// A function that allocates, as programs are given it at run time.
inline int mallocByEntryPoint(Memory* memory, std::size_t bytes) {
  using Find = hipError_t(const char*, void**, int, uint64_t, void*);
  void* function = nullptr;
  EXPECT(found<Find>("hipGetProcAddress")("hipMalloc", &function, 600, 0, nullptr) == hipSuccess);
  return reinterpret_cast<hipError_t (*)(void**, std::size_t)>(function)(out(memory), bytes);
}

inline unsigned races() { return hipFakeRaces(); }
inline unsigned long long calls(const char* name) { return hipFakeCalls(name); }
inline void during(const char* name, void (*call)()) { hipFakeDuring(name, call); }
inline unsigned long long now() { return hipFakeNow(); }

}  // namespace gpu
