// A graph that is captured and launched here: its state on the device, beside its memory.
#include "cistern/graph.hpp"

#include "allocator/base/process.hpp"
#include "pools/captured_graph.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

Graph::Graph(Pools& pools) : pools_(pools.registry()) {}

// A child of fork leaves its copy alone.
Graph::~Graph() {
  if (!pools_.isHere()) return;
  if (capturing()) abandon();
  reset();
}

bool Graph::capturing() const { return stateOf(memory_) == GraphState::kCapturing; }
MempoolId_t Graph::pool() const { return poolOf(memory_); }

// ---- Capture -----------------------------------------------------------------------------------

void Graph::captureBegin(Stream stream, MempoolId_t pool, CaptureMode mode) {
  requireState(pools_, memory_, GraphState::kIdle, "captureBegin");
  memory_ = CapturedGraph::begin(pools_, stream, pool);
  origin_ = stream;
  try {
    start(stream, mode);
  } catch (...) {
    CapturedGraph::unwind(memory_);
    throw;
  }
}

void Graph::start(Stream stream, CaptureMode mode) {
  Device& device = pools_.engine.device;
  device.beginCapture(stream, mode).orThrow();
  try {
    memory_->started(stream, device.captureInfo(stream).orThrow().id);
  } catch (...) {
    discard();
    throw;
  }
}

void Graph::includeStream(Stream stream) {
  requireState(pools_, memory_, GraphState::kCapturing, "includeStream");
  memory_->include(stream);
}

// A device that refuses may have ended the capture all the same, or not. On a thread that may not
// end it, the capture goes on, also if it is broken.
void Graph::captureEnd() {
  requireState(pools_, memory_, GraphState::kCapturing, "captureEnd");
  Device& device = pools_.engine.device;
  const Result<DeviceGraph> graph = device.endCapture(origin_);
  if (!graph) {
    const Result<CaptureInfo> info = device.captureInfo(origin_);
    const bool goes_on = info && info.value().status != CaptureStatus::kNone;
    if (!goes_on) CapturedGraph::unwind(memory_);
    throw DeviceFailure(graph.error());
  }
  graph_ = graph.value();
  memory_->end();
}

void Graph::abandon() noexcept {
  if (!capturing() || !pools_.isHere()) return;
  if (driverMayBeCalled()) discard();
  CapturedGraph::unwind(memory_);
}

// Ends the device's recording and discards it.
void Graph::discard() noexcept {
  Device& device = pools_.engine.device;
  const Result<DeviceGraph> made = device.endCapture(origin_);
  if (made && !device.destroyGraph(made.value())) (void)device.destroyGraph(made.value());
}

// ---- Running -----------------------------------------------------------------------------------

void Graph::instantiate() {
  requireState(pools_, memory_, GraphState::kCaptured, "instantiate");
  if (exec_ == DeviceGraphExec{}) exec_ = pools_.engine.device.instantiate(graph_).orThrow();
}

void Graph::replay(Stream stream) {
  requireState(pools_, memory_, GraphState::kCaptured, "replay");
  if (exec_ == DeviceGraphExec{}) instantiate();
  memory_->launching(stream);
  const Status launched = pools_.engine.device.launchGraph(exec_, stream);
  memory_->launched();
  launched.orThrow();
}

bool Graph::idle() {
  requireState(pools_, memory_, GraphState::kCaptured, "idle");
  return memory_->idle();
}

void Graph::reset() noexcept {
  if (stateOf(memory_) != GraphState::kCaptured || !pools_.isHere()) return;
  if (driverMayBeCalled()) destroy();
  graph_ = {};
  exec_ = {};
  CapturedGraph::reset(memory_);
}

// If the device refuses, the call is repeated once. After that the handle is lost, but no memory.
void Graph::destroy() noexcept {
  Device& device = pools_.engine.device;
  const auto insist = [](auto call) { (void)(call().ok() || call().ok()); };
  if (exec_ != DeviceGraphExec{}) insist([&] { return device.destroyGraphExec(exec_); });
  insist([&] { return device.destroyGraph(graph_); });
}

void Graph::debugDump(const std::string& path) {
  requireState(pools_, memory_, GraphState::kCaptured, "debugDump");
  pools_.engine.device.dumpGraph(graph_, path).orThrow();
}

}  // namespace cistern
