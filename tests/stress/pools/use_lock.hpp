// Who uses a stream or a pool of the storm: several at once, or one alone. Nobody ever waits: a
// thread that cannot have what it wants does something else, so that no program of the storm can
// come to a stand by itself.
#pragma once

#include <atomic>
#include <utility>

namespace cistern::storm {

class UseLock {
 public:
  bool tryShared() {
    int users = users_.load(std::memory_order_relaxed);
    while (users >= 0) {
      if (users_.compare_exchange_weak(users, users + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }
  bool tryAlone() {
    int none = 0;
    return users_.compare_exchange_strong(none, kAlone, std::memory_order_acquire);
  }
  void release() {
    if (users_.load(std::memory_order_relaxed) == kAlone) {
      users_.store(0, std::memory_order_release);
    } else {
      users_.fetch_sub(1, std::memory_order_release);
    }
  }

 private:
  static constexpr int kAlone = -1;
  std::atomic<int> users_{0};
};

/// A use, for a scope; false when it could not be had.
class Use {
 public:
  Use() = default;
  ~Use() { end(); }
  Use(Use&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
  Use& operator=(Use&& other) noexcept {
    end();
    lock_ = std::exchange(other.lock_, nullptr);
    return *this;
  }

  static Use shared(UseLock& lock) { return lock.tryShared() ? Use(&lock) : Use(); }
  static Use alone(UseLock& lock) { return lock.tryAlone() ? Use(&lock) : Use(); }
  explicit operator bool() const { return lock_ != nullptr; }
  void end() {
    if (lock_) std::exchange(lock_, nullptr)->release();
  }

 private:
  explicit Use(UseLock* lock) : lock_(lock) {}
  UseLock* lock_ = nullptr;
};

}  // namespace cistern::storm
