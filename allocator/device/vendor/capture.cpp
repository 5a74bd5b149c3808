// Stream capture, and the graphs that it makes.
#include <algorithm>
#include <array>
#include <span>

#include "allocator/device/vendor/vendor_device.hpp"

namespace cistern::GPU_NAMESPACE {
namespace {

StreamCaptureMode toVendor(CaptureMode mode) {
  switch (mode) {
    case CaptureMode::kGlobal:
      return GPU(StreamCaptureModeGlobal);
    case CaptureMode::kThreadLocal:
      return GPU(StreamCaptureModeThreadLocal);
    case CaptureMode::kRelaxed:
      break;
  }
  return GPU(StreamCaptureModeRelaxed);
}

CaptureMode fromVendor(StreamCaptureMode mode) {
  if (mode == GPU(StreamCaptureModeGlobal)) return CaptureMode::kGlobal;
  if (mode == GPU(StreamCaptureModeThreadLocal)) return CaptureMode::kThreadLocal;
  return CaptureMode::kRelaxed;
}

CaptureStatus fromVendor(StreamCaptureStatus status) {
  if (status == GPU(StreamCaptureStatusActive)) return CaptureStatus::kActive;
  if (status == GPU(StreamCaptureStatusInvalidated)) return CaptureStatus::kInvalidated;
  return CaptureStatus::kNone;
}

void replace(std::vector<GraphNode>& nodes, std::span<const GraphNodeHandle> handles) {
  nodes.clear();
  for (const GraphNodeHandle handle : handles) nodes.push_back({rawOf(handle)});
}

}  // namespace

// The runtimes set the id only while the capture is active.
Result<CaptureInfo> VendorDevice::doCaptureInfo(Stream stream) {
  StreamCaptureStatus status = GPU(StreamCaptureStatusNone);
  unsigned long long id = 0;
  const Error error = onDevice([&] { return streamCaptureInfo(handleOf(stream), &status, &id); });
  return outcome(Call::kCaptureInfo, error, CaptureInfo{fromVendor(status), id});
}

// All but the status is set only while the capture is active.
Result<CaptureInfo> VendorDevice::doCaptureFrontier(Stream stream, std::vector<GraphNode>& nodes) {
  StreamCaptureStatus status = GPU(StreamCaptureStatusNone);
  unsigned long long id = 0;
  const GraphNodeHandle* frontier = nullptr;
  std::size_t count = 0;
  const Error error = onDevice(
      [&] { return streamCaptureFrontier(handleOf(stream), &status, &id, &frontier, &count); });
  if (error != kSuccess) return failure(Call::kCaptureFrontier, error);
  if (status != GPU(StreamCaptureStatusActive)) count = 0;
  replace(nodes, {frontier, count});
  return CaptureInfo{fromVendor(status), id};
}

// One call in the usual case: only an answer that fills the room may have left something out.
Status VendorDevice::doNodeDependencies(GraphNode node, std::vector<GraphNode>& dependencies) {
  std::array<GraphNodeHandle, 16> few{};
  std::vector<GraphNodeHandle> many;
  std::span<GraphNodeHandle> room(few);
  for (;;) {
    std::size_t count = room.size();
    const Error error =
        onDevice([&] { return graphDependencies(handleOf(node), room.data(), &count); });
    if (error != kSuccess) return failure(Call::kNodeDependencies, error);
    if (count < room.size()) {
      replace(dependencies, room.first(count));
      return {};
    }
    many.resize(std::max(4 * room.size(), count + 1));
    room = many;
  }
}

// The mode belongs to the thread, whatever device is current.
Result<CaptureMode> VendorDevice::doExchangeCaptureMode(CaptureMode mode) {
  StreamCaptureMode exchanged = toVendor(mode);
  const Error error = GPU(ThreadExchangeStreamCaptureMode)(&exchanged);
  return outcome(Call::kExchangeCaptureMode, error, fromVendor(exchanged));
}

Status VendorDevice::doBeginCapture(Stream stream, CaptureMode mode) {
  return outcome(Call::kBeginCapture, onDevice([&] {
                   return GPU(StreamBeginCapture)(handleOf(stream), toVendor(mode));
                 }));
}

Result<DeviceGraph> VendorDevice::doEndCapture(Stream stream) {
  GraphHandle graph = nullptr;
  const Error error = onDevice([&] { return GPU(StreamEndCapture)(handleOf(stream), &graph); });
  return outcome(Call::kEndCapture, error, DeviceGraph{rawOf(graph)});
}

Result<DeviceGraphExec> VendorDevice::doInstantiate(DeviceGraph graph) {
  GraphExecHandle exec = nullptr;
  const Error error =
      onDevice([&] { return GPU(GraphInstantiateWithFlags)(&exec, handleOf(graph), 0); });
  return outcome(Call::kInstantiate, error, DeviceGraphExec{rawOf(exec)});
}

Status VendorDevice::doLaunchGraph(DeviceGraphExec exec, Stream stream) {
  return outcome(Call::kLaunchGraph,
                 onDevice([&] { return GPU(GraphLaunch)(handleOf(exec), handleOf(stream)); }));
}

Status VendorDevice::doDestroyGraph(DeviceGraph graph) {
  return outcome(Call::kDestroyGraph, onDevice([&] { return GPU(GraphDestroy)(handleOf(graph)); }));
}

Status VendorDevice::doDestroyGraphExec(DeviceGraphExec exec) {
  return outcome(Call::kDestroyGraphExec,
                 onDevice([&] { return GPU(GraphExecDestroy)(handleOf(exec)); }));
}

Status VendorDevice::doDumpGraph(DeviceGraph graph, const std::string& path) {
  return outcome(Call::kDumpGraph,
                 onDevice([&] { return graphDot(handleOf(graph), path.c_str()); }));
}

}  // namespace cistern::GPU_NAMESPACE
