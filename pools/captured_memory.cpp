#include "pools/captured_memory.hpp"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/process.hpp"
#include "allocator/device/per_thread_stream.hpp"
#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/giving_back/giving_back.hpp"
#include "allocator/engine/reports/accounting.hpp"
#include "cistern/graph.hpp"

namespace cistern {

void CapturedMemory::require(GraphState allowed, const char* verb) const {
  (void)pools_.here(verb);
  if (is(allowed)) return;
  const char* const names[] = {"idle", "capturing", "captured"};
  throw GraphError(fmt::format("{}: the graph is {}", verb, names[std::size_t(state_)]));
}

void CapturedMemory::begin(Stream origin, MempoolId_t pool) {
  const MempoolId_t id = pool == MempoolId_t{} ? graphPoolHandle(false) : pool;
  pools_.tidy();
  held_ = std::make_shared<Captured>(pools_.engine, pools_.users, id);
  pool_ = id;
  reserved_before_ = UINT64_MAX;
  try {
    deferred_release_.emplace_back(pools_.engine.device, pools_.engine.streams, held_);
    record_.push_back({held_.get(), &deferred_release_.front()});
    reserved_before_ = reservedBytes(pools_.users.visit("captureBegin", id).pool.heaps());
    recording_ = record(origin);
  } catch (...) {
    unwind();
    throw;
  }
  state_ = GraphState::kCapturing;
}

std::shared_ptr<Recording> CapturedMemory::record(Stream origin) {
  const PoolUsers::Visit visiting = pools_.users.visit("captureBegin", pool_);
  pools_.engine.streams.registerStream(origin);  // while it is not captured
  const MutexLock lock(pools_.users.mutex);
  if (visiting.pool.asleep) refusePool("captureBegin", pool_, "is asleep: wake it first");
  auto recording = std::make_shared<Recording>(pools_.engine, visiting.pool, origin);
  if (!pools_.scopes->begin(recording)) {
    refusePool("captureBegin", pool_,
               "is being captured into, or allocated to by a filter, already");
  }
  try {
    recording->prepare(origin);
  } catch (...) {
    pools_.scopes->end(*recording);
    throw;
  }
  pools_.followScopes();
  return recording;
}

void CapturedMemory::started(Stream stream, std::uint64_t id) { recording_->begin(stream, id); }

void CapturedMemory::include(Stream stream) {
  require(GraphState::kCapturing, "includeStream");
  requireOneStream(pools_.engine.device, stream);
  recording_->include(stream);
}

// The scope goes last: while it exists, the pool's next capture cannot begin. It catches no request
// any more.
Footprint CapturedMemory::stopRecording() noexcept {
  const std::shared_ptr<Recording> recording = std::move(recording_);
  Footprint footprint = recording->end();
  const MutexLock lock(pools_.users.mutex);
  pools_.scopes->end(*recording);
  pools_.followScopes();
  return footprint;
}

void CapturedMemory::end() noexcept {
  held_->hold(stopRecording());
  living_ = pools_.living.add(record_);
  state_ = GraphState::kCaptured;
  pools_.engine.imports->retry();
}

void CapturedMemory::unwind() noexcept {
  if (recording_) {
    Footprint footprint = stopRecording();
    pools_.engine.letGo(footprint);
    pools_.engine.imports->retry();
  }
  try {
    if (driverMayBeCalled())
      trim(pools_.engine, pools_.users.visit("trim", pool_).pool.heaps(), reserved_before_);
  } catch (const std::bad_alloc&) {
  }
  held_ = nullptr;
  record_.clear();
  deferred_release_.clear();
  pool_ = {};
  state_ = GraphState::kIdle;
  if (driverMayBeCalled()) pools_.tidy();
}

void CapturedMemory::launching(Stream stream) {
  requireOneStream(pools_.engine.device, stream);
  pools_.living.requireBound(living_);
  if (launchedInCapture(stream)) return;
  pools_.engine.streams.registerStream(stream);
  pools_.living.beginLaunch(living_, stream);
}

void CapturedMemory::launched() noexcept { pools_.living.endLaunch(living_); }

// A graph launched on a stream that is being captured here becomes part of that capture.
bool CapturedMemory::launchedInCapture(Stream stream) {
  if (pools_.scopes->active() == 0) return false;
  const Route route = pools_.scopes->route(stream, Router::Asked::kCaptures);
  if (route.recording) route.recording->keep(held_);
  return route.recording != nullptr;
}

void CapturedMemory::reset() noexcept {
  pools_.living.remove(living_);
  pool_ = {};
  held_ = nullptr;
  state_ = GraphState::kIdle;
  if (driverMayBeCalled()) {
    pools_.retired.add(deferred_release_);
    pools_.tidy();
  }
  deferred_release_.clear();
}

}  // namespace cistern
