// The answer of a backend that this build does not have.
#pragma once

#include <string>

#include "allocator/device/backends.hpp"

namespace cistern {

inline constexpr const char* kCudaSdk = "the CUDA toolkit 13";
inline constexpr const char* kHipSdk = "HIP's headers";

/// What a user does about a build without `vendor` ("CUDA"), however it was built.
inline std::string builtWithout(const std::string& vendor, const std::string& sdk) {
  return "Cistern was built without " + vendor + ": install " + sdk +
         " and run the command again that built it";
}

/// kNotSupported, with that text.
inline DeviceError notBuiltIn(const std::string& vendor, const std::string& sdk) {
  return {Call::kOpen, ErrorKind::kNotSupported, 0, "backend not built in",
          builtWithout(vendor, sdk)};
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
