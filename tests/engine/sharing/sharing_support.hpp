// What the tests of shared memory share.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

#include "tests/engine/engine_support.hpp"

namespace cistern::test {

/// How many descriptors this process has open.
inline std::size_t openDescriptors() {
  namespace fs = std::filesystem;
  return std::size_t(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

}  // namespace cistern::test
