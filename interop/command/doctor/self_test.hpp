// Tests whether Cistern keeps its promises on a device. Each test makes a few calls that a broken
// driver, or an unusual device, would fail.
#pragma once

#include <string>
#include <vector>

#include "cistern/device.hpp"

namespace cistern::command {

struct Finding {
  std::string what;      ///< "memory that is freed is used again"
  bool skipped = false;  ///< the device lacks what the test needs
  std::string problem;   ///< empty: it holds
};

/// Takes up to 256 MiB of the device for a moment, and a stream.
std::vector<Finding> selfTest(Device& device);

}  // namespace cistern::command
