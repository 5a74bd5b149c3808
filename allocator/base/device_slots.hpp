// One value for each device, found by the device's ordinal without a lock.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "allocator/base/mutex.hpp"

namespace cistern {

/// Ordinals are below this, also on a host that cuts every GPU into as many parts as possible.
inline constexpr int kMaxDevices = 64;

/// The ordinal as an index. Throws InvalidArgument, naming the value and the range, unless it is
/// in [0, kMaxDevices).
[[noreturn]] void throwBadOrdinal(int ordinal);
inline std::size_t ordinalIndex(int ordinal) {
  if (unsigned(ordinal) >= unsigned(kMaxDevices)) [[unlikely]]
    throwBadOrdinal(ordinal);
  return std::size_t(ordinal);
}

/// A T for each device that at() was called for. A T stays in place until the slots are destroyed.
/// Every verb is thread-safe.
template <class T>
class DeviceSlots {
 public:
  DeviceSlots() = default;
  ~DeviceSlots() {
    for (std::atomic<T*>& slot : slots_) delete slot.load(std::memory_order_relaxed);
  }
  DeviceSlots(const DeviceSlots&) = delete;
  DeviceSlots& operator=(const DeviceSlots&) = delete;

  /// The device's T, or null if not yet made. Takes no lock. Throws like ordinalIndex.
  T* find(int ordinal) const {
    return slots_[ordinalIndex(ordinal)].load(std::memory_order_acquire);
  }

  /// The device's T, default-constructed when there was none. Throws like ordinalIndex.
  T& at(int ordinal) {
    if (T* there = find(ordinal)) [[likely]]
      return *there;
    const MutexLock lock(making_);
    std::atomic<T*>& slot = slots_[std::size_t(ordinal)];
    if (T* there = slot.load(std::memory_order_relaxed)) return *there;
    slot.store(std::make_unique<T>().release(), std::memory_order_release);
    return *slot.load(std::memory_order_relaxed);
  }

  /// visit(ordinal, T&) for each device that has one. No slot is made while it runs: a thread
  /// that makes one afterwards sees all that was written before.
  template <class Visit>
  void forEach(Visit visit) const {
    const MutexLock lock(making_);
    for (int ordinal = 0; ordinal < kMaxDevices; ++ordinal) {
      if (T* there = find(ordinal)) visit(ordinal, *there);
    }
  }

 private:
  std::array<std::atomic<T*>, std::size_t(kMaxDevices)> slots_{};
  mutable Mutex making_{LockRank::kDeviceSlots};  ///< held to make a slot, never to find one
};

}  // namespace cistern
