// The tables of runtime.hpp, compiled once for each vendor. No `#if`: what differs is in the alias
// header.
#include "handles/vendor/runtime.hpp"

#include <fmt/format.h>

#include "allocator/device/vendor/alias.hpp"
#include "cistern/error.hpp"

namespace cistern::GPU_NAMESPACE {
namespace {

// What was current is told sooner than which device that is, which is asked when it has changed. A
// device keeps what stands for it as long as something of Cistern's is open on it.
int currentOrdinal() noexcept {
  static thread_local Current last{};
  static thread_local int last_ordinal = -1;
  Current now{};
  const bool told = getCurrent(&now) == kSuccess && standsForADevice(now);
  if (told && last_ordinal >= 0 && now == last) return last_ordinal;
  int ordinal = -1;  // the call leaves it untouched when it fails
  if (GPU(GetDevice)(&ordinal) != kSuccess) return -1;
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

// A thread that had chosen nothing is set to the first device, which is what it would have got.
// When a device that was current cannot be so any more, the next call that uses it says so.
void leaveDevice(std::uintptr_t before) noexcept {
  (void)(before == 0 ? GPU(SetDevice)(0) : setBack((Current)before));  // NOLINT: as above
}

int relaxCapture() noexcept {
  StreamCaptureMode mode = GPU(StreamCaptureModeRelaxed);
  return GPU(ThreadExchangeStreamCaptureMode)(&mode) == kSuccess ? int(mode) : -1;
}

void restoreCapture(int before) noexcept {
  if (before < 0) return;
  auto mode = StreamCaptureMode(before);
  (void)GPU(ThreadExchangeStreamCaptureMode)(&mode);  // takes any mode that it has given
}

int computeMajorOf(int ordinal) noexcept {
  int major = 0;
  return computeMajor(ordinal, &major) == kSuccess ? major : 0;
}

constexpr DeviceSwitch kDevices{currentOrdinal, enterDevice, leaveDevice};

// While the program is loaded: a DeviceGuard may come before the first handle.
[[maybe_unused]] const bool follows_guards = (addDeviceSwitch(kDevices), true);

}  // namespace

// Made when it is first asked for: HIP's text is known once its library was looked for.
const handles::VendorRuntime& runtime() {
  static const handles::VendorRuntime table{kDevices, noDeviceText(), relaxCapture, restoreCapture,
                                            computeMajorOf};
  return table;
}

}  // namespace cistern::GPU_NAMESPACE
