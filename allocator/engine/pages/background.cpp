#include "allocator/engine/pages/background.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

namespace cistern::pages {

bool Background::wake() noexcept {
  const std::lock_guard lock(mutex_);
  if (stopping_) return false;
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::exception&) {
    return false;
  }
  awake_ = true;
  changed_.notify_one();
  return true;
}

void Background::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

// Queued work is left alone for twice as long each time before it is asked about again; others have
// a moment to take the lock between two pieces.
void Background::run() {
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

}  // namespace cistern::pages
