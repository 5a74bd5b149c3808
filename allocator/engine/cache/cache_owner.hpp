// The thread that a cache is of, if any.
#pragma once

#include "allocator/engine/statistics/totals.hpp"

namespace cistern {

/// Changes under the lock of the cache's heap. The owner may look without it.
///
///   isMine()   =>  isOpen()
///   isOpen()   =>  counters() are those of its thread
///   !isOpen()  =>  gate() is closed
class CacheOwner {
 public:
  void set(ThreadCounters& mine) noexcept {
    counters_ = &mine;
    thread_ = threadMark();
  }
  void clear() noexcept {
    counters_ = &nobodys_;
    thread_ = nullptr;
  }
  bool isOpen() const noexcept { return thread_ != nullptr; }
  bool isMine() const noexcept { return thread_ == threadMark(); }
  ThreadCounters& counters() const noexcept { return *counters_; }
  BiasedGate& gate() const noexcept { return counters_->gate; }

 private:
  /// An address that no other living thread has.
  static const void* threadMark() noexcept;

  static constinit ThreadCounters nobodys_;

  ThreadCounters* counters_ = &nobodys_;
  const void* thread_ = nullptr;
};

}  // namespace cistern
