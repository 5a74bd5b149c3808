#include "cistern/error.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern::handles {
namespace {

const VendorRuntime& present(const VendorRuntime& runtime) {
  if (runtime.devices.current() < 0) throw Error(runtime.no_device_text);
  return runtime;
}

}  // namespace

CreationScope::CreationScope(const VendorRuntime& runtime, int device)
    : runtime_(present(runtime)), device_(device), capture_before_(runtime_.relaxCapture()) {}

CreationScope::~CreationScope() { runtime_.restoreCapture(capture_before_); }

}  // namespace cistern::handles
