// The thread that a cache is of, if any.
#pragma once

#include "allocator/engine/statistics/totals.hpp"

namespace cistern {

/// Changes under the lock of the cache's heap. The owner may look without it.
///
///   isOpen()  <=>  counters() may be called
///   isMine()   =>  isOpen()
class CacheOwner {
 public:
  void set(ThreadCounters& mine) noexcept {
    counters_ = &mine;
    thread_ = threadMark();
  }
  void clear() noexcept {
    counters_ = nullptr;
    thread_ = nullptr;
  }
  bool isOpen() const noexcept { return thread_ != nullptr; }
  bool isMine() const noexcept { return thread_ == threadMark(); }
  ThreadCounters& counters() const noexcept { return *counters_; }
  BiasedGate& gate() const noexcept { return counters_->gate; }

 private:
  /// An address that no other living thread has.
  static const void* threadMark() noexcept;

  ThreadCounters* counters_ = nullptr;
  const void* thread_ = nullptr;
};

}  // namespace cistern
