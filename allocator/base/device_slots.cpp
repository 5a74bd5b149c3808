#include "allocator/base/device_slots.hpp"

#include <fmt/format.h>

#include "cistern/error.hpp"

namespace cistern {

void throwBadOrdinal(int ordinal) {
  throw InvalidArgument(
      fmt::format("device ordinal {}: must be 0 to {}", ordinal, kMaxDevices - 1));
}

}  // namespace cistern
