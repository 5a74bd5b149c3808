#include "pools/graph.hpp"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/process.hpp"
#include "pools/captured.hpp"

namespace cistern {

Graph::~Graph() {
  if (!pools_.made_.isHere()) {
    new (this) Graph(pools_);
    return;
  }
  if (capturing()) abandon();
  reset();
}

void Graph::require(bool allowed, const char* verb) const {
  if (allowed) return;
  const char* state = capturing() ? "capturing" : graph_ != DeviceGraph{} ? "captured" : "idle";
  throw GraphError(fmt::format("{}: the graph is {}", verb, state));
}

// ---- Capture -----------------------------------------------------------------------------------

void Graph::captureBegin(Stream stream, MempoolId_t pool, CaptureMode mode) {
  require(!capturing() && graph_ == DeviceGraph{}, "captureBegin");
  const MempoolId_t id = pool == MempoolId_t{} ? graphPoolHandle(false) : pool;
  held_ = pools_.keep(id);
  pool_ = id;
  origin_ = stream;
  reserved_before_ = UINT64_MAX;
  try {
    retirement_.emplace_back(pools_.device(), pools_.allocator().engine().core.streams, held_);
    reserved_before_ =
        std::uint64_t(pools_.memoryStats(id)[std::size_t(Stat::kReservedBytes)].current);
    recording_ = pools_.beginCapture(id, stream);
    startDevice(stream, mode);
  } catch (...) {
    unwind();
    throw;
  }
}

void Graph::startDevice(Stream stream, CaptureMode mode) {
  Device& device = pools_.device();
  device.beginCapture(stream, mode).orThrow();
  try {
    recording_->begin(stream, device.captureInfo(stream).orThrow().id);
  } catch (...) {
    discard();
    throw;
  }
}

void Graph::includeStream(Stream stream) {
  require(capturing(), "includeStream");
  recording_->include(stream);
}

// A device that refuses may have ended the capture all the same, or not: on a thread that may not
// end it, it goes on, also if it is broken.
void Graph::captureEnd() {
  require(capturing(), "captureEnd");
  Device& device = pools_.device();
  const Result<DeviceGraph> graph = device.endCapture(origin_);
  if (!graph) {
    const Result<CaptureInfo> info = device.captureInfo(origin_);
    const bool goes_on = info && info.value().status != CaptureStatus::kNone;
    if (!goes_on) unwind();
    throw DeviceFailure(graph.error());
  }
  graph_ = graph.value();
  held_->hold(pools_.endCapture(*recording_));
  {
    const MutexLock lock(recording_->mutex());
    held_->keep(std::move(recording_->kept));
  }
  recording_ = nullptr;
}

void Graph::abandon() noexcept {
  if (!capturing()) return;
  if (driverMayBeCalled()) discard();
  unwind();
}

// Ends what the device records, for nothing.
void Graph::discard() noexcept {
  Device& device = pools_.device();
  const Result<DeviceGraph> graph = device.endCapture(origin_);
  if (graph && !device.destroyGraph(graph.value())) (void)device.destroyGraph(graph.value());
}

// Pre: the device does not record any more. The pool may go on living; what it has grown by goes,
// or, where the host is short of memory, lies free in it.
void Graph::unwind() noexcept {
  if (recording_) {
    Pins pins = pools_.endCapture(*recording_);
    pools_.allocator().engine().captures.unpin(pins);
    recording_ = nullptr;
  }
  try {
    if (driverMayBeCalled()) pools_.trim(pool_, reserved_before_);
  } catch (const std::bad_alloc&) {
  }
  held_ = nullptr;
  retirement_.clear();
  pool_ = {};
  if (driverMayBeCalled()) pools_.tidy();
}

// ---- Running -----------------------------------------------------------------------------------

void Graph::instantiate() {
  require(graph_ != DeviceGraph{}, "instantiate");
  if (exec_ == DeviceGraphExec{}) exec_ = pools_.device().instantiate(graph_).orThrow();
}

void Graph::replay(Stream stream) {
  require(graph_ != DeviceGraph{}, "replay");
  if (exec_ == DeviceGraphExec{}) instantiate();
  if (!pools_.keepInCapture(stream, held_)) {
    pools_.allocator().engine().core.streams.registerStream(stream);
    retirement_.front().addStream(stream);
  }
  pools_.device().launchGraph(exec_, stream).orThrow();
}

void Graph::reset() noexcept {
  if (capturing() || graph_ == DeviceGraph{}) return;
  const bool driver = driverMayBeCalled();
  if (driver) destroyOnDevice();
  graph_ = {};
  exec_ = {};
  pool_ = {};
  held_ = nullptr;
  if (driver) pools_.retire(retirement_);
  retirement_.clear();
}

// A device that says no is asked once more; then the handle is lost, but no memory.
void Graph::destroyOnDevice() noexcept {
  Device& device = pools_.device();
  const auto insist = [](auto call) { (void)(call().ok() || call().ok()); };
  if (exec_ != DeviceGraphExec{}) insist([&] { return device.destroyGraphExec(exec_); });
  insist([&] { return device.destroyGraph(graph_); });
}

void Graph::debugDump(const std::string& path) {
  require(graph_ != DeviceGraph{}, "debugDump");
  pools_.device().dumpGraph(graph_, path).orThrow();
}

}  // namespace cistern
