// Both vendor backends as a table, so that one test body serves them. Tests that need a device are
// tagged [gpu] and go over presentDevices(), which skips them on a machine without one.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/device/vendor/vendor.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {

struct Vendor {
  std::string name;
  bool (*compiled_in)();
  Result<int> (*device_count)();
  Result<std::unique_ptr<Device>> (*open)(int ordinal);
};

inline std::array<Vendor, 2> vendors() {
  return {Vendor{"cuda", cuda::compiledIn, cuda::deviceCount, cuda::open},
          Vendor{"hip", hip::compiledIn, hip::deviceCount, hip::open}};
}

/// Device 0 of each vendor that has one here. Without any, the case is skipped.
inline std::vector<std::unique_ptr<Device>> presentDevices() {
  std::vector<std::unique_ptr<Device>> present;
  for (const Vendor& vendor : vendors()) {
    if (vendor.device_count()) present.push_back(vendor.open(0).orThrow());
  }
  if (present.empty()) skipped("no GPU");
  return present;
}

}  // namespace cistern::test
