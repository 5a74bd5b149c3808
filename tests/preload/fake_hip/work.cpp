// What submits work to the fake HIP runtime's streams.
#include <utility>

#include "tests/preload/fake_hip/state.hpp"

using namespace fake;

namespace {

using cistern::sim::Access;
using cistern::sim::AccessKind;

std::uint64_t addressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

hipError_t queued(hipStream_t stream, bool per_thread, const char* name,
                  std::vector<Access> accesses, std::uint64_t nanoseconds) {
  return answer(
      fake::queue(current(), handleOf(stream), per_thread, name, std::move(accesses), nanoseconds));
}

template <class T>
T parameter(void** parameters, int which) {
  return *static_cast<T*>(parameters[which]);
}

hipError_t launch(hipStream_t stream, bool per_thread, void** parameters) {
  const auto kind = parameter<int>(parameters, 2) != 0 ? AccessKind::kWrite : AccessKind::kRead;
  return queued(
      stream, per_thread, "kernel",
      {{addressOf(parameter<void*>(parameters, 0)), parameter<std::size_t>(parameters, 1), kind}},
      parameter<unsigned long long>(parameters, 3));
}

hipError_t copy(hipStream_t stream, bool per_thread, void* to, const void* from, size_t bytes) {
  return queued(
      stream, per_thread, "copy",
      {{addressOf(from), bytes, AccessKind::kRead}, {addressOf(to), bytes, AccessKind::kWrite}},
      1000);
}

hipError_t set(hipStream_t stream, bool per_thread, void* to, size_t bytes) {
  return queued(stream, per_thread, "set", {{addressOf(to), bytes, AccessKind::kWrite}}, 1000);
}

}  // namespace

FAKE hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned, unsigned,
                                      unsigned, unsigned, unsigned, hipStream_t stream,
                                      void** parameters, void**) {
  count("hipModuleLaunchKernel");
  return launch(stream, false, parameters);
}
FAKE hipError_t hipLaunchKernel(const void*, dim3, dim3, void** parameters, size_t,
                                hipStream_t stream) {
  count("hipLaunchKernel");
  return launch(stream, false, parameters);
}
FAKE hipError_t hipLaunchKernel_spt(const void*, dim3, dim3, void** parameters, size_t,
                                    hipStream_t stream) {
  count("hipLaunchKernel_spt");
  return launch(stream, true, parameters);
}
// A function of C++, as HIP has it.
__attribute__((visibility("default"))) hipError_t hipExtModuleLaunchKernel(
    hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, size_t,
    hipStream_t stream, void** parameters, void**, hipEvent_t, hipEvent_t, uint32_t) {
  count("hipExtModuleLaunchKernel");
  return launch(stream, false, parameters);
}
FAKE hipError_t hipMemsetAsync(void* to, int, size_t bytes, hipStream_t stream) {
  count("hipMemsetAsync");
  return set(stream, false, to, bytes);
}
extern "C" hipError_t memsetAsyncSpt(void*, int, size_t, hipStream_t) __asm__("hipMemsetAsync_spt");
FAKE hipError_t memsetAsyncSpt(void* to, int, size_t bytes, hipStream_t stream) {
  count("hipMemsetAsync_spt");
  return set(stream, true, to, bytes);
}
FAKE hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                                   hipStream_t stream) {
  count("hipMemcpyDtoDAsync");
  return copy(stream, false, to, from, bytes);
}
FAKE hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  count("hipMemcpyDtoD");
  return copy(nullptr, false, to, from, bytes);
}
FAKE hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind) {
  count("hipMemcpy");
  return copy(nullptr, false, to, from, bytes);
}
FAKE hipError_t hipMemcpy_spt(void* to, const void* from, size_t bytes, hipMemcpyKind) {
  count("hipMemcpy_spt");
  return copy(nullptr, true, to, from, bytes);
}
// A version that headers of HIP before 7.1 do not have.
extern "C" hipError_t memset2D8Async(void*, size_t, unsigned char, size_t, size_t,
                                     hipStream_t) __asm__("hipMemsetD2D8Async");
FAKE hipError_t memset2D8Async(void* to, size_t, unsigned char, size_t width, size_t height,
                               hipStream_t stream) {
  count("hipMemsetD2D8Async");
  return set(stream, false, to, width * height);
}
FAKE hipError_t hipFakeLaunch(hipStream_t stream, void* address, size_t bytes,
                              unsigned long long nanoseconds) {
  count("hipFakeLaunch");
  return queued(stream, false, "unknown", {{addressOf(address), bytes, AccessKind::kWrite}},
                nanoseconds);
}

// ---- Graphs -------------------------------------------------------------------------------------

FAKE hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* out, hipGraph_t graph,
                                             unsigned long long) {
  count("hipGraphInstantiate");
  const cistern::Result<cistern::DeviceGraphExec> made =
      current().sim->instantiate({reinterpret_cast<std::uintptr_t>(graph)});
  if (made) *out = reinterpret_cast<hipGraphExec_t>(made.value().raw);
  return answer(codeOf(made));
}
FAKE hipError_t hipGraphLaunch(hipGraphExec_t graph, hipStream_t stream) {
  count("hipGraphLaunch");
  Device& here = current();
  const Stream on = streamOf(here, handleOf(stream));
  return answer(inOrder(here, on, [&] {
    return codeOf(here.sim->launchGraph({reinterpret_cast<std::uintptr_t>(graph)}, on));
  }));
}
