// Codes to errors. Read next: error_kind.cpp.
#include "allocator/device/vendor/error_kind.hpp"
#include "allocator/device/vendor/vendor_device.hpp"

namespace cistern::GPU_NAMESPACE {

void forget(Error error) {
  if (GPU(PeekAtLastError)() == error) (void)GPU(GetLastError)();
}

DeviceError failure(Call call, Error error) {
  forget(error);
  return {call, errorKind(int(error)), int(error), GPU(GetErrorName)(error),
          GPU(GetErrorString)(error)};
}

Status outcome(Call call, Error error) {
  if (error != kSuccess) return failure(call, error);
  return {};
}

}  // namespace cistern::GPU_NAMESPACE
