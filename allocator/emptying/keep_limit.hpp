// The option keep_ms: memory that a peak has left behind goes back to the device by itself.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "allocator/engine/exchange/exchange.hpp"

namespace cistern {

/// A thread that gives back, each so many milliseconds, what was not used since the last time.
class KeepLimit {
 public:
  /// Throws std::system_error if no thread can be had. Pre: the engine outlives it.
  KeepLimit(Engine& engine, std::uint64_t milliseconds);
  /// Returns when the thread has ended. Not in a child of fork, which has no such thread.
  ~KeepLimit();
  KeepLimit(const KeepLimit&) = delete;
  KeepLimit& operator=(const KeepLimit&) = delete;

 private:
  void run();

  Engine& engine_;
  const std::uint64_t milliseconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cistern
