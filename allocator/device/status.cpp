#include "allocator/device/status.hpp"

#include <fmt/format.h>

namespace cistern {

std::string DeviceError::message() const {
  std::string text = fmt::format("{} failed: {} ({})", callName(call), name, code);
  if (!detail.empty()) text += ": " + detail;
  return text;
}

}  // namespace cistern
