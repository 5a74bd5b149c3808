#include "allocator/engine/pages/background.hpp"

#include <chrono>
#include <exception>

namespace cistern::pages {
namespace {

/// How long queued work is left alone before it is asked about again.
constexpr std::chrono::milliseconds kWhile{1};

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
  while (true) {
    changed_.wait(lock, [this] { return awake_ || stopping_; });
    if (stopping_) return;
    awake_ = false;
    lock.unlock();
    const Next next = piece_();
    lock.lock();
    if (next == Next::kNothing || stopping_) continue;
    awake_ = true;
    if (next == Next::kLater) changed_.wait_for(lock, kWhile, [this] { return stopping_; });
  }
}

}  // namespace cistern::pages
