#include "pools/graph.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/process.hpp"
#include "pools/captured.hpp"

namespace cistern {

Graph::~Graph() {
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
  held_.push_back(pools_.keep(id));
  pool_ = id;
  origin_ = stream;
  try {
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
// end it, it goes on.
void Graph::captureEnd() {
  require(capturing(), "captureEnd");
  Device& device = pools_.device();
  const Result<DeviceGraph> graph = device.endCapture(origin_);
  if (!graph) {
    const Result<CaptureInfo> info = device.captureInfo(origin_);
    const bool goes_on = info && info.value().status == CaptureStatus::kActive;
    if (!goes_on) unwind();
    throw DeviceFailure(graph.error());
  }
  graph_ = graph.value();
  held_.front()->hold(pools_.endCapture(*recording_));
  {
    const MutexLock lock(recording_->mutex());
    for (const auto& part : recording_->kept) {
      held_.push_back(std::static_pointer_cast<Captured>(part));
    }
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

// Pre: the device does not record any more. The pool may go on living; what it has grown by goes.
void Graph::unwind() noexcept {
  if (recording_) {
    Pins pins = pools_.endCapture(*recording_);
    pools_.allocator().unpin(pins);
    recording_ = nullptr;
  }
  if (driverMayBeCalled()) pools_.trim(pool_, reserved_before_);
  held_.clear();
  pool_ = {};
}

// ---- Running -----------------------------------------------------------------------------------

void Graph::instantiate() {
  require(graph_ != DeviceGraph{}, "instantiate");
  if (exec_ == DeviceGraphExec{}) exec_ = pools_.device().instantiate(graph_).orThrow();
}

void Graph::replay(Stream stream) {
  require(graph_ != DeviceGraph{}, "replay");
  if (exec_ == DeviceGraphExec{}) instantiate();
  const bool seen =
      std::find(replayed_on_.begin(), replayed_on_.end(), stream) != replayed_on_.end();
  const bool queued = !pools_.keepInCapture(stream, held_);
  if (queued) pools_.allocator().knownStreams().meet(stream);
  if (queued && !seen) replayed_on_.push_back(stream);
  pools_.device().launchGraph(exec_, stream).orThrow();
}

void Graph::reset() noexcept {
  if (capturing() || graph_ == DeviceGraph{}) return;
  const bool driver = driverMayBeCalled();
  if (driver) destroyOnDevice();
  graph_ = {};
  exec_ = {};
  pool_ = {};
  if (driver)
    pools_.retire(Retirement(pools_.device(), pools_.allocator().knownStreams(), std::move(held_),
                             replayed_on_));
  held_.clear();
  replayed_on_.clear();
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
