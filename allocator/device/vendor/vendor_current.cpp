// A thread's current device, as the vendor's runtime has it.
#include <atomic>

#include <fmt/format.h>

#include "allocator/base/current_device.hpp"
#include "allocator/device/vendor/alias.hpp"
#include "allocator/device/vendor/error_kind.hpp"
#include "allocator/device/vendor/vendor.hpp"
#include "cistern/error.hpp"

namespace cistern::GPU_NAMESPACE {
namespace {

// A read of Current is faster than a query for its device. So the device is queried only when
// Current has changed. A device keeps its Current as long as something of Cistern's is open on it.
//
// A machine without a device is not queried twice: a runtime looks for its driver each time.
int currentOrdinal() noexcept {
  static std::atomic<bool> absent{false};
  if (absent.load(std::memory_order_relaxed)) return -1;
  static thread_local Current last{};
  static thread_local int last_ordinal = -1;
  Current now{};
  const bool told = getCurrent(&now) == kSuccess && standsForADevice(now);
  if (told && last_ordinal >= 0 && now == last) return last_ordinal;
  int ordinal = -1;  // the call leaves it untouched when it fails
  if (const Error error = GPU(GetDevice)(&ordinal); error != kSuccess) {
    absent = errorKind(errorCode(error)) == ErrorKind::kNoDevice;
    return -1;
  }
  if (told) last = now;
  last_ordinal = told ? ordinal : -1;
  return ordinal;
}

// Current is a pointer with one vendor and a number with the other.
static_assert(sizeof(Current) <= sizeof(std::uintptr_t));

void require(Error error, const char* call, int ordinal) {
  if (error == kSuccess) return;
  throw cistern::Error(fmt::format("device {} of {}: {} failed: {} ({}): {}", ordinal, kBackend,
                                   call, errorName(error), errorCode(error), errorText(error)));
}

std::uintptr_t enterDevice(int ordinal) {
  Current before{};
  require(getCurrent(&before), "asking for the current device", ordinal);
  require(GPU(SetDevice)(ordinal), "setting the current device", ordinal);
  return (std::uintptr_t)before;  // NOLINT: see above
}

// A thread that had chosen no device is set to the first, which it would have got anyway. If a
// device that was current no longer can be, the next call that uses it reports that.
void leaveDevice(std::uintptr_t before) noexcept {
  (void)(before == 0 ? GPU(SetDevice)(0) : setBack((Current)before));  // NOLINT: as above
}

constexpr DeviceSwitch kSwitch{currentOrdinal, enterDevice, leaveDevice};

// While the program is loaded: a DeviceGuard may come before the first device is opened.
[[maybe_unused]] const bool follows_guards = (addDeviceSwitch(kSwitch), true);

}  // namespace

const DeviceSwitch& deviceSwitch() noexcept { return kSwitch; }

}  // namespace cistern::GPU_NAMESPACE
