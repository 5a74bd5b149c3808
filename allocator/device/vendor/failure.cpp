// Codes to errors. Read next: error_kind.cpp.
#include <new>

#include "allocator/device/vendor/error_kind.hpp"
#include "allocator/device/vendor/vendor_device.hpp"

namespace cistern::GPU_NAMESPACE {

void forget(Error error) {
  if (GPU(PeekAtLastError)() == error) (void)GPU(GetLastError)();
}

DeviceError failure(Call call, Error error) {
  forget(error);
  const int code = errorCode(error);
  DeviceError failed{call, errorKind(code), code, errorName(error), {}};
  try {
    failed.detail = errorText(error);
  } catch (const std::bad_alloc&) {
    // The host is short of memory: the name tells it too.
  }
  return failed;
}

Status outcome(Call call, Error error) {
  if (error != kSuccess) return failure(call, error);
  return {};
}

}  // namespace cistern::GPU_NAMESPACE
