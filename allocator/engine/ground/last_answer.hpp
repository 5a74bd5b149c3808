// The device's last answer to a backing that asked it for memory, and calls that must not be lost.
#pragma once

#include <atomic>
#include <new>
#include <string>

#include "allocator/base/mutex.hpp"

namespace cistern {

/// Thread-safe; its lock is a leaf.
class LastAnswer {
 public:
  /// The device's last message, if it refused; else nothing. An OutOfMemoryReport contains
  /// this message.
  std::string error() const {
    const MutexLock lock(mutex_);
    return error_;
  }
  /// Whether the device's last answer was a refusal.
  bool wasRefused() const { return refused_.load(std::memory_order_relaxed); }
  /// Notes the device's answer to a call that takes memory from it, maps it, or gives some back.
  /// The answer is a Result or a Status.
  template <class Answer>
  void note(const Answer& answer) noexcept {
    if (answer.ok() && !refused_.load(std::memory_order_relaxed)) return;
    const MutexLock lock(mutex_);
    refused_.store(!answer.ok(), std::memory_order_relaxed);
    try {
      error_ = answer.ok() ? std::string() : answer.error().message();
    } catch (const std::bad_alloc&) {
      error_.clear();
    }
  }

 private:
  std::atomic<bool> refused_{false};
  mutable Mutex mutex_{LockRank::kLastError};
  std::string error_ CISTERN_GUARDED_BY(mutex_);
};

/// For calls that nobody can make again later: if the device refuses, the call is made once more.
template <class Call>
bool insist(Call call) {
  return call().ok() || call().ok();
}

}  // namespace cistern
