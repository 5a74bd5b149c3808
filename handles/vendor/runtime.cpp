// The tables of runtime.hpp, compiled once for each vendor. No `#if`: the differences are in the
// alias header.
#include "handles/vendor/runtime.hpp"

#include "allocator/device/vendor/alias.hpp"
#include "allocator/device/vendor/vendor.hpp"

namespace cistern::GPU_NAMESPACE {
namespace {

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

}  // namespace

// Made at the first call: HIP's text is known once its library was looked for.
const handles::VendorRuntime& runtime() {
  static const handles::VendorRuntime table{deviceSwitch(), noDeviceText(), relaxCapture,
                                            restoreCapture, computeMajorOf};
  return table;
}

}  // namespace cistern::GPU_NAMESPACE
