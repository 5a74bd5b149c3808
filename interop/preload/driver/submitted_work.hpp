// The work that the program submits, as the hooks see it. They tell the followed order of it, just
// before and just after. A stream that was let through is let through again, without a lock, until
// something has changed.
#pragma once

#include <array>

#include "interop/preload/driver/context_order.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// A thread's memory of the streams that it submits to.
struct WorkingThread {
  struct Passed {
    StreamHandle stream;
    std::uint64_t epoch;  ///< 0: that of no time
  };
  std::array<Passed, 4> passed;
  bool any;     ///< it is in a function that may submit work to any stream, or was
  bool inside;  ///< the calls that we make of the driver ourselves
  bool ends;    ///< its end is reported
};

/// Work that is submitted to one stream, while it is.
class Work {
 public:
  /// Just before the driver's function is called.
  explicit Work(StreamHandle stream) noexcept : order_(ContextOrder::followed()), stream_(stream) {
    if (order_ == nullptr) return;
    const Passed& passed = passedAt(stream);
    seen_ = passed.epoch;
    if (passed.stream != stream || seen_ != ContextOrder::epoch() || thread_.any) [[unlikely]]
      enter();
  }
  /// The thread was cancelled in the driver's function: it may have submitted the work.
  ~Work() {
    if (!ended_) submitted(kSuccess);
  }
  /// Just after. The work came after everything that happened in between.
  void submitted(Code result) noexcept {
    ended_ = true;
    if (order_ != nullptr && seen_ != ContextOrder::epoch()) [[unlikely]]
      leave(result);
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Work is about to be submitted by a function that is not known, to any stream. That it has
  /// returned is seen when the thread comes here again.
  static void anyBegins() noexcept;
  /// The thread is about to free a block: the work that it has submitted counts as submitted.
  static void atFree() noexcept {
    if (thread_.any) [[unlikely]]
      anyEnded();
  }

 private:
  using Passed = WorkingThread::Passed;
  static Passed& passedAt(StreamHandle stream) noexcept {
    const auto handle = reinterpret_cast<std::uintptr_t>(stream);
    return thread_.passed[(handle ^ handle >> 4 ^ handle >> 8) % 4];
  }
  static void anyEnded() noexcept;
  static void threadEnds(void*) noexcept { atFree(); }
  void enter() noexcept;
  void leave(Code result) noexcept;

  ContextOrder* order_;
  const StreamHandle stream_;
  std::uint64_t seen_ = 0;
  bool known_ = true;
  bool ended_ = false;

  static inline constinit thread_local WorkingThread thread_{};
};

}  // namespace cistern::preload::GPU_NAMESPACE
