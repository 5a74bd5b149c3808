// Captures and graphs.
#include <vector>

#include "fake_runtime.hpp"

namespace fake {
namespace {

cudaStreamCaptureStatus statusOf(cistern::CaptureStatus status) {
  switch (status) {
    case cistern::CaptureStatus::kActive:
      return cudaStreamCaptureStatusActive;
    case cistern::CaptureStatus::kInvalidated:
      return cudaStreamCaptureStatusInvalidated;
    default:
      return cudaStreamCaptureStatusNone;
  }
}

/// Behind a cudaGraph_t, and, with another handle, a cudaGraphExec_t.
template <class Handle>
struct Of {
  cistern::sim::SimulatedDevice& device;
  Handle handle;
};
using Graph = Of<cistern::DeviceGraph>;
using Exec = Of<cistern::DeviceGraphExec>;
Graph& graphOf(cudaGraph_t graph) { return *reinterpret_cast<Graph*>(graph); }
Exec& execOf(cudaGraphExec_t exec) { return *reinterpret_cast<Exec*>(exec); }

/// The nodes that the stream's next work would follow stay there until the thread's next call.
cudaError_t captureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                        unsigned long long* id, cudaGraph_t* graph, const cudaGraphNode_t** nodes,
                        std::size_t* count) {
  static thread_local std::vector<cistern::GraphNode> frontier;
  const auto info = deviceOf(stream).captureFrontier(streamOf(stream), frontier);
  if (!info.ok()) return answer(info.error());
  *status = statusOf(info.value().status);
  if (id != nullptr) *id = info.value().id;
  if (graph != nullptr) *graph = nullptr;
  static_assert(sizeof(cistern::GraphNode) == sizeof(cudaGraphNode_t));
  if (nodes != nullptr) *nodes = reinterpret_cast<const cudaGraphNode_t*>(frontier.data());
  if (count != nullptr) *count = frontier.size();
  return cudaSuccess;
}

cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph) {
  Graph& of = graphOf(graph);
  const auto made = of.device.instantiate(of.handle);
  if (!made.ok()) return answer(made.error());
  *exec = reinterpret_cast<cudaGraphExec_t>(new Exec{of.device, made.value()});
  return cudaSuccess;
}

}  // namespace
}  // namespace fake

FAKE_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return fake::answer(
      fake::deviceOf(stream).beginCapture(fake::streamOf(stream), cistern::CaptureMode(mode)));
}
FAKE_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  cistern::sim::SimulatedDevice& device = fake::deviceOf(stream);
  const auto captured = device.endCapture(fake::streamOf(stream));
  *graph = nullptr;
  if (!captured.ok()) return fake::answer(captured.error());
  *graph = reinterpret_cast<cudaGraph_t>(new fake::Graph{device, captured.value()});
  return cudaSuccess;
}
FAKE_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return fake::captureInfo(stream, status, nullptr, nullptr, nullptr, nullptr);
}
#if CUDART_VERSION >= 13000
FAKE_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                              unsigned long long* id, cudaGraph_t* graph,
                                              const cudaGraphNode_t** nodes,
                                              const cudaGraphEdgeData** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return fake::captureInfo(stream, status, id, graph, nodes, count);
}
#else
FAKE_API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream,
                                                 cudaStreamCaptureStatus* status,
                                                 unsigned long long* id, cudaGraph_t* graph,
                                                 const cudaGraphNode_t** nodes,
                                                 std::size_t* count) {
  return fake::captureInfo(stream, status, id, graph, nodes, count);
}
#endif
FAKE_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const auto before = fake::current().exchangeCaptureMode(cistern::CaptureMode(*mode));
  if (!before.ok()) return fake::answer(before.error());
  *mode = cudaStreamCaptureMode(before.value());
  return cudaSuccess;
}

FAKE_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long) {
  return fake::instantiate(exec, graph);
}
FAKE_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                   unsigned long long) {
  return fake::instantiate(exec, graph);
}
FAKE_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  fake::Exec& of = fake::execOf(exec);
  return fake::answer(of.device.launchGraph(of.handle, fake::streamOf(stream)));
}
FAKE_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const fake::Graph of = fake::graphOf(graph);
  delete &fake::graphOf(graph);
  return fake::answer(of.device.destroyGraph(of.handle));
}
FAKE_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const fake::Exec of = fake::execOf(exec);
  delete &fake::execOf(exec);
  return fake::answer(of.device.destroyGraphExec(of.handle));
}
/// PyTorch warns of a graph that has none.
FAKE_API cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, std::size_t* count) {
  *count = 1;
  return cudaSuccess;
}
