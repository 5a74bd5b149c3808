// The turn of a thread whose request the driver has refused.
//
// Several threads that give memory back and ask again would each have a part of the memory that the
// others lack. A thread that meets another one doing so would find nothing to give back. So they
// take turns. During a turn no other thread takes memory of that device for Cistern's caches: the
// returned memory stays free for the request. Their growth is refused, not delayed, because they
// hold locks that giving back needs. Then they wait for a turn of their own, with no lock held.
#pragma once

#include <array>
#include <mutex>
#include <shared_mutex>

#include "allocator/base/mutex.hpp"
#include "interop/preload/driver/driver.hpp"

namespace cistern::preload::GPU_NAMESPACE {

namespace detail {
struct TurnsOfDevice {
  Mutex turn{LockRank::kLastResort};
  std::shared_mutex growing;  ///< shared while memory is taken; waited for in a turn alone
};
}  // namespace detail

/// The calling thread's turn as long as it lives; it waits for those before it. Pre: the thread has
/// none, and holds no lock.
class LastResort {
 public:
  explicit LastResort(int device)
      : device_(of(device)), turn_(device_.turn), alone_(device_.growing) {
    mine_ = true;
  }
  ~LastResort() { mine_ = false; }
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

  /// Whether the calling thread has a turn.
  static bool isMine() noexcept { return mine_; }
  /// Calls `take`, which takes memory of the device for a cache; kOutOfMemory in another's turn.
  template <class Take>
  static Code grow(int device, Take take) {
    if (mine_) return take();
    const std::shared_lock growing(of(device).growing, std::try_to_lock);
    return growing.owns_lock() ? take() : kOutOfMemory;
  }

 private:
  using OfDevice = detail::TurnsOfDevice;
  static OfDevice& of(int device) noexcept { return devices_[unsigned(device) % devices_.size()]; }

  static inline std::array<OfDevice, 64> devices_;
  static inline constinit thread_local bool mine_ = false;

  OfDevice& device_;
  const MutexLock turn_;
  const std::lock_guard<std::shared_mutex> alone_;
};

}  // namespace cistern::preload::GPU_NAMESPACE
