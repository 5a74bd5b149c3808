// Handles for tests of the C API.
#pragma once

#include <cstdint>
#include <string>

#include "cistern/cistern.h"
#include "tests/support/catch.hpp"

namespace cistern::test {

inline cistern_allocator_t makeSim(std::uint64_t capacity = 0) {
  cistern_sim_config_t config{};
  config.size = sizeof(config);
  config.capacity = capacity;
  cistern_allocator_t allocator = nullptr;
  REQUIRE(cistern_allocator_create_sim(&config, "", &allocator) == CISTERN_OK);
  return allocator;
}

inline cistern_pool_t makePool(cistern_allocator_t allocator) {
  cistern_pool_t pool = nullptr;
  REQUIRE(cistern_pool_create(allocator, nullptr, &pool) == CISTERN_OK);
  return pool;
}

/// One allocation and its free; what the first that failed has said.
inline cistern_status_t pair(cistern_allocator_t allocator) {
  void* block = nullptr;
  const cistern_status_t status = cistern_allocate(allocator, 512, nullptr, &block);
  return status != CISTERN_OK ? status : cistern_free(allocator, block);
}

inline bool lastErrorHas(const std::string& text) {
  return std::string(cistern_last_error()).find(text) != std::string::npos;
}

}  // namespace cistern::test
