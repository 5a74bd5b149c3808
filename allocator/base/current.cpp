#include "cistern/current.hpp"

#include <atomic>

#include "allocator/base/check.hpp"
#include "allocator/base/current_device.hpp"

namespace cistern {
namespace {

constinit thread_local int chosen_device = -1;  // -1: no guard

// Filled from the front; null behind the last one.
constinit std::array<std::atomic<const DeviceSwitch*>, std::size_t(kMaxDeviceSwitches)> switches{};

template <class Visit>
void forEachSwitch(Visit visit) {
  for (const auto& slot : switches) {
    const DeviceSwitch* const one = slot.load(std::memory_order_acquire);
    if (one == nullptr || !visit(*one)) return;
  }
}

}  // namespace

void addDeviceSwitch(const DeviceSwitch& device_switch) noexcept {
  for (auto& slot : switches) {
    const DeviceSwitch* there = nullptr;
    if (slot.compare_exchange_strong(there, &device_switch) || there == &device_switch) return;
  }
  constexpr bool kThereIsRoom = false;
  CISTERN_CHECK(kThereIsRoom);
}

int currentDevice() noexcept {
  if (chosen_device >= 0) return chosen_device;
  int found = -1;
  forEachSwitch([&](const DeviceSwitch& one) { return (found = one.current()) < 0; });
  return found < 0 ? 0 : found;
}

Stream currentStream(int device) { return detail::current_streams[ordinalIndex(device)]; }

StreamGuard::StreamGuard(Stream stream, int device)
    : device_(ordinalIndex(device)), before_(detail::current_streams[device_]) {
  detail::current_streams[device_] = stream;
}

StreamGuard::~StreamGuard() { detail::current_streams[device_] = before_; }

DeviceGuard::DeviceGuard(int device) : chosen_before_(chosen_device) {
  (void)ordinalIndex(device);
  try {
    forEachSwitch([&](const DeviceSwitch& one) {
      const int current = one.current();
      if (current >= 0 && current != device) {
        entered_[count_] = {&one, one.enter(device)};
        ++count_;
      }
      return true;
    });
  } catch (...) {
    leaveAll();
    throw;
  }
  chosen_device = device;
  if (device != 0) detail::another_device.store(true, std::memory_order_relaxed);
}

DeviceGuard::~DeviceGuard() {
  chosen_device = chosen_before_;
  leaveAll();
}

void DeviceGuard::leaveAll() noexcept {
  while (count_ > 0) {
    --count_;
    entered_[count_].vendor->leave(entered_[count_].before);
  }
}

}  // namespace cistern
