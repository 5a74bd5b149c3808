// The simulated device's captures and graphs. See sim_device.hpp, sim_captures.hpp.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "allocator/device/sim/costs.hpp"
#include "allocator/device/sim/refusal.hpp"
#include "allocator/device/sim/sim_device.hpp"

namespace cistern::sim {

// ---- Capture -----------------------------------------------------------------------------------

Result<CaptureInfo> SimDevice::doCaptureInfo(Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kCaptureInfo, cost::kCaptureInfo); !in.ok()) return in.error();
  if (Status ok = checkStream(Call::kCaptureInfo, stream); !ok.ok()) return ok.error();
  return captures_.infoOf(stream);
}

Result<CaptureMode> SimDevice::doExchangeCaptureMode(CaptureMode mode) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kExchangeCaptureMode, cost::kExchangeCaptureMode); !in.ok()) {
    return in.error();
  }
  return std::exchange(threadCaptureMode(), mode);
}

Status SimDevice::doBeginCapture(Stream stream, CaptureMode mode) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kBeginCapture, cost::kBeginCapture); !in.ok()) return in;
  if (Status ok = checkStream(Call::kBeginCapture, stream); !ok.ok()) return ok;
  if (stream == Stream{}) {
    return refusal(Call::kBeginCapture, Reason::kCaptureUnsupported,
                   "the default stream cannot be captured");
  }
  return captures_.begin(stream, mode);
}

Result<DeviceGraph> SimDevice::doEndCapture(Stream stream) {
  MutexLock lock(mutex_);
  const Status in = enter(Call::kEndCapture, cost::kEndCapture);
  if (Status ok = checkStream(Call::kEndCapture, stream); !ok.ok()) return ok.error();
  auto body = captures_.end(stream);  // also before a planned fault: it fails, but has ended
  if (!in.ok()) return in.error();
  if (!body.ok()) return body.error();
  const DeviceGraph graph{next_handle_++};
  graphs_.emplace(graph.raw, std::move(body.value()));
  return graph;
}

// ---- Graphs ------------------------------------------------------------------------------------

Result<DeviceGraphExec> SimDevice::doInstantiate(DeviceGraph graph) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kInstantiate, cost::kInstantiate); !in.ok()) return in.error();
  const auto it = graphs_.find(graph.raw);
  if (it == graphs_.end()) {
    return refusal(Call::kInstantiate, Reason::kInvalidHandle, "the graph is not alive");
  }
  ExecState exec;
  exec.body = it->second;
  for (std::size_t i = 0; i < exec.body->order.width(); ++i) {
    exec.lanes.push_back(detector_.openLane());
  }
  const DeviceGraphExec handle{next_handle_++};
  execs_.emplace(handle.raw, std::move(exec));
  return handle;
}

Status SimDevice::doLaunchGraph(DeviceGraphExec exec, Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kLaunchGraph, cost::kLaunchGraph); !in.ok()) return in;
  if (Status ok = checkStream(Call::kLaunchGraph, stream); !ok.ok()) return ok;
  const auto it = execs_.find(exec.raw);
  if (it == execs_.end()) {
    return refusal(Call::kLaunchGraph, Reason::kInvalidHandle, "the graph is not alive");
  }
  const auto recording = capturing(Call::kLaunchGraph, stream);
  if (!recording.ok()) return recording.error();
  const GraphBody& body = *it->second.body;
  if (recording.value()) {
    captures_.appendGraph(stream, body);
    return {};
  }
  std::vector<std::vector<Span>> spans(body.size());
  for (NodeId node = 0; node < body.size(); ++node) {
    Status found =
        resolve(Call::kLaunchGraph, *body.works[node], body.tags[node]->stream, spans[node]);
    if (!found.ok()) return found;
  }
  queueGraph(it->second, *find(stream), spans);
  return {};
}

// Branches of a graph overlap; two launches of one executable do not.
void SimDevice::queueGraph(ExecState& exec, StreamState& stream,
                           std::vector<std::vector<Span>>& spans) {
  const GraphBody& body = *exec.body;
  const std::uint64_t start =
      std::max({clock_.now() + config_.gpu_lag_ns, stream.tail, exec.completion});
  auto run = detector_.beginGraph(stream.lane, exec.lanes, exec.moment);
  std::vector<std::uint64_t> completions(body.size());
  exec.completion = start;
  for (NodeId node = 0; node < body.size(); ++node) {
    std::uint64_t ready = start;
    for (const NodeId before : body.after[node]) ready = std::max(ready, completions[before]);
    completions[node] = later(ready, durationOf(*body.works[node], spans[node]));
    exec.completion = std::max(exec.completion, completions[node]);
    if (detector_.enabled()) {
      detector_.runNode(run, body.order, node, body.tags[node], spans[node]);
    }
    if (!body.works[node]->effect || completions[node] == kNever) continue;
    effects_.add(completions[node], body.works[node], std::move(spans[node]));
  }
  exec.moment = detector_.endGraph(run, body.order, stream.lane);
  stream.tail = exec.completion;
  device_tail_ = std::max(device_tail_, stream.tail);
}

Status SimDevice::doDestroyGraph(DeviceGraph graph) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kDestroyGraph, cost::kDestroyGraph); !in.ok()) return in;
  if (graphs_.erase(graph.raw) == 1) return {};
  return refusal(Call::kDestroyGraph, Reason::kInvalidHandle, "the graph is not alive");
}

Status SimDevice::doDestroyGraphExec(DeviceGraphExec exec) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kDestroyGraphExec, cost::kDestroyGraph); !in.ok()) return in;
  const auto it = execs_.find(exec.raw);
  if (it == execs_.end()) {
    return refusal(Call::kDestroyGraphExec, Reason::kInvalidHandle, "the graph is not alive");
  }
  for (const LaneId lane : it->second.lanes) detector_.closeLane(lane);
  execs_.erase(it);
  return {};
}

}  // namespace cistern::sim
