#include "pools/captured_memory.hpp"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/process.hpp"
#include "allocator/device/per_thread_stream.hpp"
#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/engine.hpp"
#include "cistern/graph.hpp"

namespace cistern {

void CapturedMemory::require(bool allowed, const char* verb) const {
  (void)pools_.here(verb);
  if (allowed) return;
  const char* const names[] = {"idle", "capturing", "captured"};
  throw GraphError(fmt::format("{}: the graph is {}", verb, names[std::size_t(state_)]));
}

void CapturedMemory::begin(Stream origin, MempoolId_t pool) {
  const MempoolId_t id = pool == MempoolId_t{} ? graphPoolHandle(false) : pool;
  held_ = pools_.keep(id);
  pool_ = id;
  reserved_before_ = UINT64_MAX;
  try {
    retirement_.emplace_back(pools_.device(), pools_.allocator().engine().streams, held_);
    reserved_before_ =
        std::uint64_t(pools_.memoryStats(id)[std::size_t(Stat::kReservedBytes)].current);
    recording_ = pools_.beginCapture(id, origin);
  } catch (...) {
    unwind();
    throw;
  }
  state_ = State::kCapturing;
}

void CapturedMemory::started(Stream stream, std::uint64_t id) { recording_->begin(stream, id); }

void CapturedMemory::include(Stream stream) {
  requireOneStream(pools_.device(), stream);
  recording_->include(stream);
}

void CapturedMemory::end() noexcept {
  held_->hold(pools_.endCapture(*recording_));
  recording_ = nullptr;
  state_ = State::kCaptured;
  pools_.allocator().engine().imports->retry();
}

void CapturedMemory::unwind() noexcept {
  if (recording_) {
    Footprint footprint = pools_.endCapture(*recording_);
    pools_.allocator().engine().unbind(footprint);
    recording_ = nullptr;
    pools_.allocator().engine().imports->retry();
  }
  try {
    if (driverMayBeCalled()) pools_.trim(pool_, reserved_before_);
  } catch (const std::bad_alloc&) {
  }
  held_ = nullptr;
  retirement_.clear();
  pool_ = {};
  state_ = State::kIdle;
  if (driverMayBeCalled()) pools_.tidy();
}

// A graph launched on a stream that is being captured here becomes part of that capture.
void CapturedMemory::launching(Stream stream) {
  requireOneStream(pools_.device(), stream);
  if (pools_.keepInCapture(stream, held_)) return;
  pools_.allocator().engine().streams.registerStream(stream);
  retirement_.front().addStream(stream);
}

void CapturedMemory::reset() noexcept {
  pool_ = {};
  held_ = nullptr;
  state_ = State::kIdle;
  if (driverMayBeCalled()) {
    pools_.retired.add(retirement_);
    pools_.tidy();
  }
  retirement_.clear();
}

}  // namespace cistern
