// A program on the fake CUDA driver, linked to it. See gpu_names.hpp.
#pragma once

#include "tests/preload/fake_driver/fake_driver.hpp"

namespace gpu {

using Stream = CUstream;
using Event = CUevent;
using Graph = CUgraph;
using Thread = CUcontext;  ///< what another thread has to take over

// Calls are counted by these names.
constexpr const char* kMalloc = "cuMemAlloc";
constexpr const char* kRecord = "cuEventRecord";
constexpr const char* kWait = "cuStreamWaitEvent";
constexpr const char* kLaunch = "cuLaunchKernel";
constexpr const char* kSynchronize = "cuCtxSynchronize";
constexpr const char* kTake = "cuMemCreate";
constexpr const char* kGiveBack = "cuMemRelease";
constexpr const char* kEndOfSynchronize = "the end of cuCtxSynchronize";

inline CUdeviceptr addressOf(Memory memory) { return reinterpret_cast<CUdeviceptr>(memory); }
inline CUdeviceptr* out(Memory* memory) { return reinterpret_cast<CUdeviceptr*>(memory); }

inline void begin() {
  CUcontext context = nullptr;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
}
inline Thread thisThread() {
  CUcontext context = nullptr;
  EXPECT(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  return context;
}
/// Another context of the same device, which this thread does not take.
inline Thread makeContext() {
  CUcontext context = nullptr;
  using Create = CUresult(CUcontext*, unsigned, CUdevice);
  EXPECT(driverFunction<Create>("cuCtxCreate_v2")(&context, 0, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxPopCurrent(&context) == CUDA_SUCCESS);
  return context;
}
inline void endContext(Thread context) { EXPECT(cuCtxDestroy(context) == CUDA_SUCCESS); }
/// The primary context of the second device.
inline Thread otherDevice() {
  static const Thread context = [] {
    CUcontext made = nullptr;
    EXPECT(cuDevicePrimaryCtxRetain(&made, 1) == CUDA_SUCCESS);
    return made;
  }();
  return context;
}
inline std::size_t deviceOf(Thread thread) { return thread == otherDevice() ? 1 : 0; }
inline void takeOver(Thread thread) { EXPECT(cuCtxSetCurrent(thread) == CUDA_SUCCESS); }

inline int malloc(Memory* memory, std::size_t bytes) { return cuMemAlloc(out(memory), bytes); }
inline int free(Memory memory) { return cuMemFree(addressOf(memory)); }
inline int mallocAsync(Memory* memory, std::size_t bytes, Stream stream) {
  return cuMemAllocAsync(out(memory), bytes, stream);
}
inline int freeAsync(Memory memory, Stream stream) {
  return cuMemFreeAsync(addressOf(memory), stream);
}
inline int mallocManaged(Memory* memory, std::size_t bytes) {
  return cuMemAllocManaged(out(memory), bytes, 1);
}

using IpcHandle = CUipcMemHandle;
inline int getHandle(IpcHandle* handle, Memory memory) {
  return cuIpcGetMemHandle(handle, addressOf(memory));
}
inline int openHandle(Memory* memory, const IpcHandle& handle) {
  return cuIpcOpenMemHandle(out(memory), handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}
inline int closeHandle(Memory memory) { return cuIpcCloseMemHandle(addressOf(memory)); }
inline int write(Memory to, const void* from, std::size_t bytes) {
  return cuMemcpyHtoD(addressOf(to), from, bytes);
}
inline int read(void* to, Memory from, std::size_t bytes) {
  return cuMemcpyDtoH(to, addressOf(from), bytes);
}
/// All that the current device has in this process goes.
inline int reset() { return cuDevicePrimaryCtxReset(0); }

using Pool = CUmemoryPool;
constexpr const char* kMallocAsync = "cuMemAllocAsync";
inline Pool defaultPool(int device = 0) {
  Pool pool = nullptr;
  EXPECT(cuDeviceGetDefaultMemPool(&pool, device) == CUDA_SUCCESS);
  return pool;
}
inline Pool makePool(int device = 0) {
  CUmemPoolProps wanted{};
  wanted.location.id = device;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  Pool pool = nullptr;
  EXPECT(cuMemPoolCreate(&pool, &wanted) == CUDA_SUCCESS);
  return pool;
}
/// One that the program has made, of the thread's device.
inline Pool ownPool(Thread thread) {
  static const Pool pools[] = {makePool(0), makePool(1)};
  return pools[deviceOf(thread)];
}
inline int mallocFrom(Memory* memory, std::size_t bytes, Pool pool, Stream stream) {
  return cuMemAllocFromPoolAsync(out(memory), bytes, pool, stream);
}
inline int memoryInfo(std::size_t* free_bytes, std::size_t* total) {
  return cuMemGetInfo(free_bytes, total);
}
inline int destroyPool(Pool pool) { return cuMemPoolDestroy(pool); }
inline int setPool(Pool pool) { return cuDeviceSetMemPool(0, pool); }
/// The same by the newer function.
inline int setPoolOfMemory(Pool pool) {
  CUmemLocation device{};
  device.type = CU_MEM_LOCATION_TYPE_DEVICE;
  using Set = CUresult(CUmemLocation*, CUmemAllocationType, CUmemoryPool);
  return driverFunction<Set>("cuMemSetMemPool")(&device, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}
inline int letDeviceUse(Pool pool, int device) {
  CUmemAccessDesc allowed{};
  allowed.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  allowed.location.id = device;
  allowed.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemPoolSetAccess(pool, &allowed, 1);
}
inline int getOfPool(Pool pool, int attribute, void* out) {
  return cuMemPoolGetAttribute(pool, CUmemPool_attribute(attribute), out);
}
inline int setOfPool(Pool pool, int attribute, void* value) {
  return cuMemPoolSetAttribute(pool, CUmemPool_attribute(attribute), value);
}
inline int trimPool(Pool pool, std::size_t keep) { return cuMemPoolTrimTo(pool, keep); }

inline int createStream(Stream* stream, unsigned flags) { return cuStreamCreate(stream, flags); }
inline int destroyStream(Stream stream) { return cuStreamDestroy(stream); }
inline int synchronize() { return cuCtxSynchronize(); }
inline int synchronizeStream(Stream stream) { return cuStreamSynchronize(stream); }
inline int createEvent(Event* event) { return cuEventCreate(event, CU_EVENT_DISABLE_TIMING); }
inline int recordEvent(Event event, Stream stream) { return cuEventRecord(event, stream); }
/// FAKE_FORGETS_WAITS does not take it away.
inline int waitEvent(Stream stream, Event event) { return cuFakeWaitEvent(stream, event, 0); }

inline int launch(Stream stream, Memory memory, std::size_t bytes, unsigned long long time) {
  CUdeviceptr address = addressOf(memory);
  int writes = 1;
  void* parameters[] = {&address, &bytes, &writes, &time};
  return cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}
/// By a function that nobody knows.
inline int launchUnknown(Stream stream, Memory memory, std::size_t bytes, unsigned long long time) {
  static const auto queue = driverFunction<decltype(cuFakeLaunch)>("cuFakeLaunch");
  return queue(stream, "unknown", addressOf(memory), bytes, 1, time);
}
inline int set(Stream stream, Memory memory, std::size_t bytes) {
  return cuMemsetD8Async(addressOf(memory), 0, bytes, stream);
}
inline int copy(Stream stream, Memory to, Memory from, std::size_t bytes) {
  return cuMemcpyDtoDAsync(addressOf(to), addressOf(from), bytes, stream);
}

inline int beginCapture(Stream stream, int mode) {
  return cuStreamBeginCapture(stream, CUstreamCaptureMode(mode));
}
inline int endCapture(Stream stream, Graph* graph) { return cuStreamEndCapture(stream, graph); }
inline int exchangeMode(int mode) {
  auto exchanged = CUstreamCaptureMode(mode);
  return cuThreadExchangeStreamCaptureMode(&exchanged);
}
inline int launchGraph(Graph graph, Stream stream) {
  CUgraphExec ready = nullptr;
  EXPECT(cuGraphInstantiateWithFlags(&ready, graph, 0) == CUDA_SUCCESS);
  return cuGraphLaunch(ready, stream);
}

inline unsigned races() { return cuFakeRaces(); }
inline unsigned long long calls(const char* name) { return cuFakeCalls(name); }
inline void during(const char* name, void (*call)()) { cuFakeDuring(name, call); }
inline unsigned long long now() { return cuFakeNow(); }

}  // namespace gpu
