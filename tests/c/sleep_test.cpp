// Pools sleep and wake through the C interface.
#include <cstdint>
#include <cstring>
#include <string>

#include "cistern/cistern.h"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

struct Sim {
  Sim() {
    cistern_sim_config_t config{};
    config.size = sizeof config;
    config.capacity = std::uint64_t{1} << 30;
    REQUIRE(cistern_allocator_create_sim(&config, "backing:pages", &allocator) == CISTERN_OK);
    REQUIRE(cistern_stream_create(allocator, &stream) == CISTERN_OK);
    REQUIRE(cistern_pool_create(allocator, nullptr, &pool) == CISTERN_OK);
  }
  ~Sim() {
    CHECK(cistern_pool_destroy(pool) == CISTERN_OK);
    CHECK(cistern_allocator_destroy(allocator) == CISTERN_OK);
  }
  bool asleep() const {
    int is = -1;
    CHECK(cistern_pool_is_asleep(pool, &is) == CISTERN_OK);
    return is == 1;
  }
  cistern_allocator_t allocator = nullptr;
  cistern_pool_t pool = nullptr;
  void* stream = nullptr;
};

bool said(const char* what) {
  return std::string(cistern_last_error()).find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("pools sleep and wake, and say what that took", "[c]") {
  Sim sim;
  void *block = nullptr, *dropped = nullptr, *out = nullptr;
  REQUIRE(cistern_pool_allocate(sim.pool, 24 << 20, sim.stream, &block) == CISTERN_OK);
  REQUIRE(cistern_pool_allocate(sim.pool, 24 << 20, sim.stream, &dropped) == CISTERN_OK);
  CHECK(cistern_pool_set_contents(sim.pool, dropped, CISTERN_CONTENTS_DROP) == CISTERN_OK);
  int foreign = 0;
  CHECK(cistern_pool_set_contents(sim.pool, &foreign, CISTERN_CONTENTS_DROP) ==
        CISTERN_INVALID_POINTER);
  cistern_sleep_report_t slept{};
  slept.size = sizeof slept;
  CHECK(cistern_pools_sleep(&sim.pool, 1, &sim.stream, CISTERN_CONTENTS_SAVE, &slept) ==
        CISTERN_OK);
  int copied = -1;
  char read[64];
  CHECK(cistern_pool_copy_saved(sim.pool, read, block, sizeof read, &copied) == CISTERN_OK);
  CHECK(copied == 1);
  CHECK(cistern_pool_copy_saved(sim.pool, read, dropped, sizeof read, &copied) == CISTERN_OK);
  CHECK(copied == 0);
  CHECK(cistern_pool_copy_saved(sim.pool, nullptr, block, 1, &copied) == CISTERN_INVALID_ARGUMENT);
  CHECK(sim.asleep());
  CHECK(slept.released >= 48 << 20);
  CHECK(slept.stayed == 0);
  CHECK(slept.saved == 24 << 20);
  CHECK(slept.pinned_anew >= 24 << 20);
  CHECK(cistern_pool_allocate(sim.pool, 512, sim.stream, &out) == CISTERN_INVALID_STATE);
  CHECK(said("asleep"));
  CHECK(cistern_free(sim.allocator, dropped) == CISTERN_OK);
  cistern_wake_report_t woken{};
  woken.size = sizeof woken;
  CHECK(cistern_pools_wake(&sim.pool, 1, 0, &woken) == CISTERN_OK);
  CHECK_FALSE(sim.asleep());
  CHECK(woken.mapped >= 24 << 20);
  CHECK(woken.restored == 24 << 20);
  CHECK(woken.pinned == 0);
  CHECK(cistern_pools_sleep(&sim.pool, 1, nullptr, CISTERN_CONTENTS_ZERO, nullptr) == CISTERN_OK);
  CHECK(cistern_pools_wake(&sim.pool, 1, 1, nullptr) == CISTERN_OK);
  CHECK(cistern_free(sim.allocator, block) == CISTERN_OK);
}

TEST_CASE("arguments of sleep that make no sense are refused by name", "[c]") {
  Sim sim, other;
  const cistern_pool_t both[] = {sim.pool, other.pool};
  CHECK(cistern_pools_sleep(both, 2, nullptr, CISTERN_CONTENTS_SAVE, nullptr) ==
        CISTERN_INVALID_ARGUMENT);
  CHECK(said("pools[1]"));
  CHECK(cistern_pools_sleep(both, 0, nullptr, CISTERN_CONTENTS_SAVE, nullptr) ==
        CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_pools_wake(nullptr, 1, 1, nullptr) == CISTERN_INVALID_ARGUMENT);
  CHECK(said("pools"));
  CHECK(cistern_pools_sleep(both, 1, nullptr, cistern_contents_t(7), nullptr) ==
        CISTERN_INVALID_ARGUMENT);
  CHECK(said("contents"));
  cistern_sleep_report_t report{};
  CHECK(cistern_pools_sleep(both, 1, nullptr, CISTERN_CONTENTS_SAVE, &report) ==
        CISTERN_INVALID_ARGUMENT);
  CHECK(said("size"));
}

}  // namespace cistern::test
