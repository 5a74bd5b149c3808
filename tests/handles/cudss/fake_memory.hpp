// What the fake cuDSS was told about memory, and what a fake driver gives.
#pragma once

#include <map>
#include <vector>

#include <cudss.h>

#include "cistern/handles/cudss.hpp"

namespace cistern::test {

struct FakeMemory {
  static inline bool refuse_handler = false;
  static inline void* of_the_driver = nullptr;  ///< what it gives; null: nothing
  static inline std::vector<void*> given_to_driver;
  static inline int errors_cleared = 0;

  static std::map<cudssHandle_t, cudssDeviceMemHandler_t>& handlers() {
    static auto& all = *new std::map<cudssHandle_t, cudssDeviceMemHandler_t>;
    return all;
  }
};

}  // namespace cistern::test
