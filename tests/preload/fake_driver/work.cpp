// What submits work to the fake driver's streams.
#include <cstdint>
#include <utility>

#include "tests/preload/fake_driver/state.hpp"

using namespace fake;

namespace {

using cistern::sim::Access;
using cistern::sim::AccessKind;

CUresult queue(CUstream stream, bool per_thread, const char* name, std::vector<Access> accesses,
               std::uint64_t nanoseconds) {
  return CUresult(
      fake::queue(current(), handleOf(stream), per_thread, name, std::move(accesses), nanoseconds));
}

template <class T>
T parameter(void** parameters, int which) {
  return *static_cast<T*>(parameters[which]);
}

CUresult launch(CUstream stream, bool per_thread, void** parameters) {
  const auto address = parameter<CUdeviceptr>(parameters, 0);
  const auto kind = parameter<int>(parameters, 2) != 0 ? AccessKind::kWrite : AccessKind::kRead;
  return queue(stream, per_thread, "kernel",
               {{address, parameter<std::size_t>(parameters, 1), kind}},
               parameter<unsigned long long>(parameters, 3));
}

CUresult copy(CUstream stream, bool per_thread, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return queue(stream, per_thread, "copy",
               {{from, bytes, AccessKind::kRead}, {to, bytes, AccessKind::kWrite}}, 1000);
}

}  // namespace

FAKE CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CUstream stream, void** parameters, void**) {
  FAKE_BEGIN("cuLaunchKernel");
  return launch(stream, false, parameters);
}
FAKE CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                  unsigned, unsigned, CUstream stream, void** parameters, void**) {
  FAKE_BEGIN("cuLaunchKernel_ptsz");
  return launch(stream, true, parameters);
}
FAKE CUresult cuLaunchKernelEx(const CUlaunchConfig* how, CUfunction, void** parameters, void**) {
  FAKE_BEGIN("cuLaunchKernelEx");
  return launch(how->hStream, false, parameters);
}
// With host memory that is not pinned the host waits until it is done.
FAKE CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  FAKE_BEGIN("cuMemcpyHtoD");
  const int queued = fake::queue(current(), 0, false, "copy", {{to, bytes, AccessKind::kWrite}},
                                 1000, [=](auto& memory) { memory.write(to, from, bytes); });
  return queued != 0 ? CUresult(queued) : CUresult(codeOf(current().sim->synchronizeStream({})));
}
FAKE CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  FAKE_BEGIN("cuMemcpyDtoH");
  const int queued = fake::queue(current(), 0, false, "copy", {{from, bytes, AccessKind::kRead}},
                                 1000, [=](auto& memory) { memory.read(from, to, bytes); });
  return queued != 0 ? CUresult(queued) : CUresult(codeOf(current().sim->synchronizeStream({})));
}
FAKE CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char, size_t bytes, CUstream stream) {
  FAKE_BEGIN("cuMemsetD8Async");
  return queue(stream, false, "set", {{to, bytes, AccessKind::kWrite}}, 1000);
}
FAKE CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                   CUstream stream) {
  FAKE_BEGIN("cuMemcpyDtoDAsync");
  return copy(stream, false, to, from, bytes);
}
FAKE CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  FAKE_BEGIN("cuMemcpyDtoD");
  return copy(nullptr, false, to, from, bytes);
}
FAKE CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  FAKE_BEGIN("cuMemcpyDtoD_ptds");
  return copy(nullptr, true, to, from, bytes);
}
FAKE CUresult cuFakeLaunch(CUstream stream, const char* name, CUdeviceptr address, size_t bytes,
                           int writes, unsigned long long nanoseconds) {
  FAKE_BEGIN("cuFakeLaunch");
  return queue(stream, false, name,
               {{address, bytes, writes != 0 ? AccessKind::kWrite : AccessKind::kRead}},
               nanoseconds);
}

// ---- Graphs -------------------------------------------------------------------------------------

FAKE CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
  FAKE_BEGIN("cuGraphInstantiate");
  const cistern::Result<cistern::DeviceGraphExec> made =
      current().sim->instantiate({reinterpret_cast<std::uintptr_t>(graph)});
  if (made) *out = reinterpret_cast<CUgraphExec>(made.value().raw);
  return CUresult(codeOf(made));
}
FAKE CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  FAKE_BEGIN("cuGraphLaunch");
  Device& here = current();
  const Stream on = streamOf(here, handleOf(stream));
  return CUresult(inOrder(here, on, [&] {
    return codeOf(here.sim->launchGraph({reinterpret_cast<std::uintptr_t>(graph)}, on));
  }));
}

// ---- Tables that nobody has documented ----------------------------------------------------------

namespace {

CUresult tableLaunch(CUstream stream, CUdeviceptr address, size_t bytes) {
  count("a private table's launch");
  return queue(stream, false, "private", {{address, bytes, AccessKind::kWrite}}, 1'000'000);
}

}  // namespace

// Each begins with its size, but for one.
FAKE CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  static void* const sized[] = {reinterpret_cast<void*>(sizeof(void*) * 2),
                                reinterpret_cast<void*>(&tableLaunch)};
  static void* const plain[] = {reinterpret_cast<void*>(&tableLaunch),
                                reinterpret_cast<void*>(&tableLaunch)};
  *table = id->bytes[0] == 1 ? sized : plain;
  return CUDA_SUCCESS;
}
