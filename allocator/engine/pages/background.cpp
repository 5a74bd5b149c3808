#include "allocator/engine/pages/background.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

namespace cistern::pages {
namespace {

/// How long queued work is left alone before it is asked about again: twice as long each time.
constexpr std::chrono::milliseconds kWhile{1}, kLongWhile{128};
/// How long others have to take the lock between two pieces.
constexpr std::chrono::microseconds kBreath{20};

}  // namespace

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

void Background::run() {
  std::unique_lock lock(mutex_);
  std::chrono::milliseconds wait = kWhile;
  while (true) {
    changed_.wait(lock, [this] { return awake_ || stopping_; });
    if (stopping_) return;
    awake_ = false;
    lock.unlock();
    const Next next = piece_();
    lock.lock();
    const bool later = next == Next::kLater;
    wait = later ? std::min(wait * 2, kLongWhile) : kWhile;
    if (next == Next::kNothing || stopping_) continue;
    awake_ = true;
    if (later) {
      changed_.wait_for(lock, wait, [this] { return stopping_; });
    } else {
      changed_.wait_for(lock, kBreath, [this] { return stopping_; });
    }
  }
}

}  // namespace cistern::pages
