// Whether Cistern does on a device what it promises: a few calls each, of which a broken driver, or
// a device that is not like others, would show.
#pragma once

#include <string>
#include <vector>

#include "cistern/device.hpp"

namespace cistern::command {

struct Finding {
  std::string what;      ///< "memory that is freed is used again"
  bool skipped = false;  ///< the device has not what it takes
  std::string problem;   ///< empty: it holds
};

/// Takes up to 256 MiB of the device for a moment, and a stream.
std::vector<Finding> selfTest(Device& device);

}  // namespace cistern::command
