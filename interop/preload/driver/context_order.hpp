// The order of the work of one context.
//
// cudaFree waits for the device; what is freed may therefore be used at once by any stream
// afterwards. A barrier gives the same without the host's wait: everything that is queued in the
// context after it runs after everything that was queued before. The legacy default stream is its
// hub. Each stream that the program has made is waited for by the hub, then the hub by each of
// them. Per-thread default streams, which nobody makes, synchronise with the legacy stream by
// themselves.
#pragma once

#include <mutex>
#include <vector>

#include "interop/preload/driver/functions.hpp"

namespace cistern::preload {

class ContextOrder {
 public:
  ContextOrder(const Functions& driver, CUcontext context) : driver_(driver), context_(context) {}
  /// Leaves its events, which go with the context.
  ~ContextOrder() = default;
  ContextOrder(const ContextOrder&) = delete;
  ContextOrder& operator=(const ContextOrder&) = delete;

  CUcontext context() const noexcept { return context_; }

  /// Whether the stream was made in this context, and is there.
  bool knows(CUstream stream);
  /// A stream was made: what is queued on it comes after the last barrier.
  void created(CUstream stream);
  /// A stream is about to be destroyed. What is queued on it still runs.
  void destroying(CUstream stream) noexcept;

  // Pre of what follows: the context is current, and no capture begins meanwhile.

  /// Whether some stream is captured, so that no barrier can be had.
  bool capturing() noexcept;
  /// Orders all that is queued later after all that was queued before. On failure some of it may
  /// be.
  CUresult barrier() noexcept;
  /// Everything that is queued later, on any stream, comes after the event.
  CUresult allAfter(CUevent event) noexcept;
  /// Appends events behind everything queued so far. They are the caller's.
  CUresult fence(std::vector<CUevent>& events) noexcept;

 private:
  struct Made {
    CUstream stream;
    CUevent event;  ///< to be recorded on it; null until needed
  };

  CUresult recordOn(CUevent& event, CUstream stream) noexcept;
  CUresult gatherEnded() noexcept;
  CUresult gather() noexcept;
  CUresult spread() noexcept;

  const Functions& driver_;
  const CUcontext context_;
  std::mutex mutex_;
  std::vector<Made> streams_;  // under mutex_, as are
  std::vector<CUevent>
      ended_;  // behind the work of streams that are gone, until the hub waits for it
  CUevent hub_event_ = nullptr;  // what the hub had reached at the last barrier
};

}  // namespace cistern::preload
