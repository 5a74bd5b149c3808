// The answer of a backend that this build does not have.
#pragma once

#include <string>

#include "allocator/device/backends.hpp"

namespace cistern {

/// kNotSupported, with a text that the build lacks `vendor` ("CUDA") and which option adds it.
inline DeviceError notBuiltIn(const std::string& vendor) {
  return {Call::kOpen, ErrorKind::kNotSupported, 0, "backend not built in",
          "this build of Cistern is without " + vendor + "; configure with -DCISTERN_" + vendor +
              "=ON"};
}

/// The row of a backend that this build does not have; `count` and `open` return notBuiltIn().
constexpr Backend absentBackend(std::string_view name, decltype(Backend::deviceCount) count,
                                decltype(Backend::open) open) {
  return {.name = name,
          .compiled_in = false,
          .simulated = false,
          .deviceCount = count,
          .open = open,
          .deviceSwitch = nullptr};
}

}  // namespace cistern
