#include "allocator/base/current.hpp"

#include <atomic>

#include "allocator/base/check.hpp"

namespace cistern {
namespace {

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

int detail::vendorDevice() noexcept {
  int found = -1;
  forEachSwitch([&](const DeviceSwitch& one) { return (found = one.current()) < 0; });
  return found < 0 ? 0 : found;
}

DeviceGuard::DeviceGuard(int device) : chosen_before_(detail::chosen_device) {
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
  detail::chosen_device = device;
}

DeviceGuard::~DeviceGuard() {
  detail::chosen_device = chosen_before_;
  leaveAll();
}

void DeviceGuard::leaveAll() noexcept {
  while (count_ > 0) {
    --count_;
    entered_[count_].vendor->leave(entered_[count_].before);
  }
}

}  // namespace cistern
