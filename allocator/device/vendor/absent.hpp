// The answer of a backend that this build does not have.
#pragma once

#include <string>

#include "cistern/status.hpp"

namespace cistern {

/// kNotSupported, with a text that the build lacks `vendor` ("CUDA") and which option adds it.
inline DeviceError notBuiltIn(const std::string& vendor) {
  return {Call::kOpen, ErrorKind::kNotSupported, 0, "backend not built in",
          "this build of Cistern is without " + vendor + "; configure with -DCISTERN_" + vendor +
              "=ON"};
}

}  // namespace cistern
