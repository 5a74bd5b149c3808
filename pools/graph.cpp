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
  pools_.createOrIncrefPool(id);
  try {
    reserved_before_ =
        std::uint64_t(pools_.memoryStats(id)[std::size_t(Stat::kReservedBytes)].current);
    recording_ = pools_.beginCapture(id);
  } catch (...) {
    pools_.letGo(id);
    throw;
  }
  pool_ = id;
  origin_ = stream;
  try {
    startDevice(stream, mode);
  } catch (...) {
    unwind();
    throw;
  }
}

void Graph::startDevice(Stream stream, CaptureMode mode) {
  Device& device = pools_.device();
  device.beginCapture(stream, mode).orThrow();
  const Result<CaptureInfo> info = device.captureInfo(stream);
  if (info) return recording_->begin(stream, info.value().id);
  discard();
  throw DeviceFailure(info.error());
}

void Graph::includeStream(Stream stream) {
  require(capturing(), "includeStream");
  recording_->include(stream);
}

void Graph::captureEnd() {
  require(capturing(), "captureEnd");
  const Result<DeviceGraph> graph = pools_.device().endCapture(origin_);
  if (!graph) {
    unwind();
    throw DeviceFailure(graph.error());
  }
  graph_ = graph.value();
  Pins pins = pools_.endCapture(*recording_);
  held_.push_back(std::make_shared<Captured>(pools_, pool_, std::move(pins)));
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
  Pins pins = pools_.endCapture(*recording_);
  recording_ = nullptr;
  pools_.allocator().unpin(pins);
  held_.clear();
  if (!driverMayBeCalled()) return;
  pools_.trim(pool_, reserved_before_);
  pools_.letGo(std::exchange(pool_, {}));
}

// ---- Running -----------------------------------------------------------------------------------

void Graph::instantiate() {
  require(graph_ != DeviceGraph{}, "instantiate");
  if (exec_ == DeviceGraphExec{}) exec_ = pools_.device().instantiate(graph_).orThrow();
}

void Graph::replay(Stream stream) {
  require(graph_ != DeviceGraph{}, "replay");
  if (exec_ == DeviceGraphExec{}) instantiate();
  if (std::find(replayed_on_.begin(), replayed_on_.end(), stream) == replayed_on_.end()) {
    replayed_on_.push_back(stream);
  }
  pools_.keepInCapture(stream, held_);
  pools_.device().launchGraph(exec_, stream).orThrow();
}

void Graph::reset() noexcept {
  if (capturing() || graph_ == DeviceGraph{}) return;
  const bool driver = driverMayBeCalled();
  if (driver) destroyOnDevice();
  graph_ = {};
  exec_ = {};
  pool_ = {};
  if (driver) pools_.retire(Retirement(pools_.device(), std::move(held_), replayed_on_));
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
