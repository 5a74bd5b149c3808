// Both vendor backends in a row, so that one test body serves them. Tests that need a device are
// tagged [gpu] and go over presentDevices(), which skips them on a machine without one.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "allocator/device/vendor/vendor.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {

inline std::array<Backend, 2> vendors() { return {cuda::kTableEntry, hip::kTableEntry}; }

/// Device 0 of each vendor that has one here. Without any, the case is skipped.
inline std::vector<std::unique_ptr<Device>> presentDevices() {
  std::vector<std::unique_ptr<Device>> present;
  for (const Backend& vendor : vendors()) {
    if (vendor.deviceCount()) present.push_back(vendor.open(0).orThrow());
  }
  if (present.empty()) skipped("no GPU");
  return present;
}

}  // namespace cistern::test
