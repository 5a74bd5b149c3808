// The memory of a graph that the program captures itself.
#include <fmt/format.h>

#include "allocator/device/per_thread_stream.hpp"
#include "cistern/graph.hpp"
#include "pools/captured_graph.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

GraphMemory::GraphMemory(Pools& pools) : pools_(pools.registry()) {}

// A child of fork leaves its copy alone.
GraphMemory::~GraphMemory() {
  if (!pools_.isHere()) return;
  if (capturing()) memory_->end();
  reset();
}

// This comes before any other call on the stream: its present capture has begun without us.
void GraphMemory::captureBegin(Stream stream, MempoolId_t pool) {
  requireState(pools_, memory_, GraphState::kIdle, "captureBegin");
  requireOneStream(pools_.engine.device, stream);
  const CaptureInfo info = pools_.engine.device.captureInfo(stream).orThrow();
  if (info.status != CaptureStatus::kActive) {
    throw InvalidArgument(
        fmt::format("captureBegin: the stream {:#x} is not being captured; begin the capture first",
                    stream.raw));
  }
  memory_ = CapturedGraph::begin(pools_, stream, pool);
  try {
    memory_->started(stream, info.id);
  } catch (...) {
    CapturedGraph::unwind(memory_);
    throw;
  }
}

void GraphMemory::includeStream(Stream stream) {
  requireState(pools_, memory_, GraphState::kCapturing, "includeStream");
  memory_->include(stream);
}

void GraphMemory::captureEnd() {
  requireState(pools_, memory_, GraphState::kCapturing, "captureEnd");
  memory_->end();
}

void GraphMemory::launching(Stream stream) {
  requireState(pools_, memory_, GraphState::kCaptured, "launching");
  memory_->launching(stream);
}

void GraphMemory::launched() {
  requireState(pools_, memory_, GraphState::kCaptured, "launched");
  memory_->launched();
}

// A graph that was reset within the scope has no launches any more.
void GraphMemory::endLaunch() noexcept {
  if (stateOf(memory_) == GraphState::kCaptured && pools_.isHere()) memory_->launched();
}

bool GraphMemory::idle() {
  requireState(pools_, memory_, GraphState::kCaptured, "idle");
  return memory_->idle();
}

void GraphMemory::reset() noexcept {
  if (stateOf(memory_) == GraphState::kCaptured && pools_.isHere()) CapturedGraph::reset(memory_);
}

bool GraphMemory::capturing() const { return stateOf(memory_) == GraphState::kCapturing; }
MempoolId_t GraphMemory::pool() const { return poolOf(memory_); }

}  // namespace cistern
