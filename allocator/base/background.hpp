// A thread that does small pieces of work when it is woken. It is started when first needed, and
// stops, between two pieces, when its owner goes.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "allocator/base/lock_order.hpp"

namespace cistern {

class Background {
 public:
  enum class Next { kNothing, kMore, kLater };

  /// `piece` does one piece of work, on the thread, and says what comes next: nothing until wake(),
  /// more at once, or more in a while.
  explicit Background(std::function<Next()> piece) : piece_(std::move(piece)) {}
  ~Background() { stop(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// There is work. Never throws; false when no thread can be had, or it was stopped.
  bool wake() noexcept try {
    const RankedScope rank(LockRank::kBackground);
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    changed_.notify_one();
    return awake_ = true;
  } catch (const std::exception&) {
    return false;
  }
  /// Returns when the piece at hand is done. No piece runs after it.
  void stop() noexcept {
    {
      const RankedScope rank(LockRank::kBackground);
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  // Queued work is polled again after a pause that is twice as long each time. Other threads have a
  // moment to take the lock between two pieces.
  void run() {
    constexpr std::chrono::microseconds kMoment{20}, kWhile{1'000}, kLongWhile{128'000};
    std::unique_lock lock(mutex_);
    std::chrono::microseconds pause = kMoment;
    while (true) {
      changed_.wait(lock, [this] { return awake_ || stopping_; });
      if (stopping_) return;
      awake_ = false;
      lock.unlock();
      const Next next = piece_();
      lock.lock();
      pause = next == Next::kLater ? std::clamp(2 * pause, kWhile, kLongWhile) : kMoment;
      if (next == Next::kNothing) continue;
      awake_ = true;
      changed_.wait_for(lock, pause, [this] { return stopping_; });
    }
  }

  const std::function<Next()> piece_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool awake_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cistern
