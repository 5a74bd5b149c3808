// A graph that is captured and launched here: its state on the device, beside its memory.
#include "cistern/graph.hpp"

#include "allocator/base/process.hpp"
#include "pools/captured_memory.hpp"

namespace cistern {

struct DeviceCapture {
  explicit DeviceCapture(PoolRegistry& pools) : memory(pools) {}

  Device& device() const { return memory.pools().engine.device; }
  void start(Stream stream, CaptureMode mode);
  void discard() noexcept;
  void destroy() noexcept;

  CapturedMemory memory;  ///< and the graph's state
  Stream origin;          ///< the capture began on it
  DeviceGraph graph;      ///< what was captured
  DeviceGraphExec exec;   ///< its executable form; null until it is instantiated
};

Graph::Graph(Pools& pools) : state_(std::make_unique<DeviceCapture>(pools.registry())) {}

// A child of fork leaves its copy alone.
Graph::~Graph() {
  if (!state_->memory.pools().isHere()) {
    (void)state_.release();
    return;
  }
  if (capturing()) abandon();
  reset();
}

bool Graph::capturing() const { return state_->memory.is(GraphState::kCapturing); }
MempoolId_t Graph::pool() const { return state_->memory.pool(); }

// ---- Capture -----------------------------------------------------------------------------------

void Graph::captureBegin(Stream stream, MempoolId_t pool, CaptureMode mode) {
  state_->memory.require(GraphState::kIdle, "captureBegin");
  state_->memory.begin(stream, pool);
  state_->origin = stream;
  try {
    state_->start(stream, mode);
  } catch (...) {
    state_->memory.unwind();
    throw;
  }
}

void DeviceCapture::start(Stream stream, CaptureMode mode) {
  device().beginCapture(stream, mode).orThrow();
  try {
    memory.started(stream, device().captureInfo(stream).orThrow().id);
  } catch (...) {
    discard();
    throw;
  }
}

void Graph::includeStream(Stream stream) { state_->memory.include(stream); }

// A device that refuses may have ended the capture all the same, or not. On a thread that may not
// end it, the capture goes on, also if it is broken.
void Graph::captureEnd() {
  state_->memory.require(GraphState::kCapturing, "captureEnd");
  Device& device = state_->device();
  const Result<DeviceGraph> graph = device.endCapture(state_->origin);
  if (!graph) {
    const Result<CaptureInfo> info = device.captureInfo(state_->origin);
    const bool goes_on = info && info.value().status != CaptureStatus::kNone;
    if (!goes_on) state_->memory.unwind();
    throw DeviceFailure(graph.error());
  }
  state_->graph = graph.value();
  state_->memory.end();
}

void Graph::abandon() noexcept {
  if (!capturing() || !state_->memory.pools().isHere()) return;
  if (driverMayBeCalled()) state_->discard();
  state_->memory.unwind();
}

// Ends the device's recording and discards it.
void DeviceCapture::discard() noexcept {
  const Result<DeviceGraph> made = device().endCapture(origin);
  if (made && !device().destroyGraph(made.value())) (void)device().destroyGraph(made.value());
}

// ---- Running -----------------------------------------------------------------------------------

void Graph::instantiate() {
  state_->memory.require(GraphState::kCaptured, "instantiate");
  if (state_->exec == DeviceGraphExec{})
    state_->exec = state_->device().instantiate(state_->graph).orThrow();
}

void Graph::replay(Stream stream) {
  state_->memory.require(GraphState::kCaptured, "replay");
  if (state_->exec == DeviceGraphExec{}) instantiate();
  state_->memory.launching(stream);
  const Status launched = state_->device().launchGraph(state_->exec, stream);
  state_->memory.launched();
  launched.orThrow();
}

bool Graph::idle() {
  state_->memory.require(GraphState::kCaptured, "idle");
  return state_->memory.idle();
}

void Graph::reset() noexcept {
  if (!state_->memory.is(GraphState::kCaptured) || !state_->memory.pools().isHere()) return;
  if (driverMayBeCalled()) state_->destroy();
  state_->graph = {};
  state_->exec = {};
  state_->memory.reset();
}

// If the device refuses, the call is repeated once. After that the handle is lost, but no memory.
void DeviceCapture::destroy() noexcept {
  const auto insist = [](auto call) { (void)(call().ok() || call().ok()); };
  if (exec != DeviceGraphExec{}) insist([&] { return device().destroyGraphExec(exec); });
  insist([&] { return device().destroyGraph(graph); });
}

void Graph::debugDump(const std::string& path) {
  state_->memory.require(GraphState::kCaptured, "debugDump");
  state_->device().dumpGraph(state_->graph, path).orThrow();
}

}  // namespace cistern
