// What opening a vendor's device says where its runtime cannot serve.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/stat.h>

#include "cistern/device.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

inline std::string refusalOf(const char* backend) {
  try {
    openDevice(backend);
  } catch (const DeviceFailure& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

/// The loader would wait for its writer, until the test's time is over.
inline void makePipe(const std::string& path) {
  std::filesystem::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
}

}  // namespace cistern::test
