// Whether the program is capturing a graph.
//
// Between a free and the next use of the memory, Cistern uses the legacy default stream. An event
// there breaks the capture of any stream that synchronises with it. So the hooks report captures,
// and while one begins nothing is put into streams.
#pragma once

#include <atomic>

#include "allocator/base/mutex.hpp"
#include "interop/preload/driver/driver.hpp"

namespace cistern::preload::GPU_NAMESPACE {

class Captures {
 public:
  /// Held while something is put into streams that no capture may have; a capture begins before or
  /// after it.
  Mutex& beginning() noexcept { return beginning_; }

  /// Calls `begin`, which begins a capture if it returns kSuccess.
  template <class Begin>
  Code begin(Begin begin) {
    const MutexLock lock(beginning_);
    const Code result = begin();
    if (result == kSuccess) ++begun_;
    return result;
  }
  /// Notes the result of a call to end a capture. A capture that was broken has ended too.
  void ended(Code result) noexcept {
    const bool goes_on = result == kIllegalState || result == kCaptureUnmatched ||
                         result == kCaptureWrongThread || result == kInvalidHandle;
    int now = begun_;
    while (!goes_on && now > 0 && !begun_.compare_exchange_weak(now, now - 1)) {
    }
  }

  /// False: none is active. Captures whose stream was destroyed count until forget().
  bool maybe() const noexcept { return begun_.load(std::memory_order_relaxed) != 0; }
  /// All streams have been asked, and none is captured. Pre: beginning() is held.
  void forget() noexcept { begun_ = 0; }

 private:
  Mutex beginning_{LockRank::kCapturesBegin};
  std::atomic<int> begun_{0};
};

}  // namespace cistern::preload::GPU_NAMESPACE
