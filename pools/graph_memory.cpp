// The memory of a graph that the program captures itself.
#include <fmt/format.h>

#include "allocator/device/per_thread_stream.hpp"
#include "cistern/graph.hpp"
#include "pools/captured_memory.hpp"

namespace cistern {

GraphMemory::GraphMemory(Pools& pools)
    : memory_(std::make_unique<CapturedMemory>(pools.registry())) {}

// A child of fork leaves its copy alone.
GraphMemory::~GraphMemory() {
  if (!memory_->pools().isHere()) {
    (void)memory_.release();
    return;
  }
  if (capturing()) memory_->end();
  reset();
}

// This comes before any other call on the stream: its present capture has begun without us.
void GraphMemory::captureBegin(Stream stream, MempoolId_t pool) {
  memory_->require(GraphState::kIdle, "captureBegin");
  requireOneStream(memory_->pools().engine.device, stream);
  const CaptureInfo info = memory_->pools().engine.device.captureInfo(stream).orThrow();
  if (info.status != CaptureStatus::kActive) {
    throw InvalidArgument(
        fmt::format("captureBegin: the stream {:#x} is not being captured; begin the capture first",
                    stream.raw));
  }
  memory_->begin(stream, pool);
  try {
    memory_->started(stream, info.id);
  } catch (...) {
    memory_->unwind();
    throw;
  }
}

void GraphMemory::includeStream(Stream stream) { memory_->include(stream); }

void GraphMemory::captureEnd() {
  memory_->require(GraphState::kCapturing, "captureEnd");
  memory_->end();
}

void GraphMemory::launching(Stream stream) {
  memory_->require(GraphState::kCaptured, "launching");
  memory_->launching(stream);
}

void GraphMemory::launched() {
  memory_->require(GraphState::kCaptured, "launched");
  memory_->launched();
}

// A graph that was reset within the scope has no launches any more.
void GraphMemory::endLaunch() noexcept {
  if (memory_->is(GraphState::kCaptured) && memory_->pools().isHere()) memory_->launched();
}

bool GraphMemory::idle() {
  memory_->require(GraphState::kCaptured, "idle");
  return memory_->idle();
}

void GraphMemory::reset() noexcept {
  if (memory_->is(GraphState::kCaptured) && memory_->pools().isHere()) memory_->reset();
}

bool GraphMemory::capturing() const { return memory_->is(GraphState::kCapturing); }
MempoolId_t GraphMemory::pool() const { return memory_->pool(); }

}  // namespace cistern
