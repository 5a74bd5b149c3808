// Scopes of threads that end, hooks of C++ code, forks, and what a snapshot and a text say.
#include <thread>

#include "cistern/memory.hpp"
#include "cistern/sim.hpp"
#include "tests/c/c_support.hpp"
#include "tests/support/child_process.hpp"

using namespace cistern::test;

TEST_CASE("a pool is kept by a scope of a thread that goes on, and not by that of one that ended",
          "[c]") {
  const cistern_allocator_t a = makeSim();
  const cistern_pool_t pool = makePool(a);
  std::thread([&] { REQUIRE(cistern_pool_scope_begin(pool) == CISTERN_OK); }).join();
  std::thread([&] {
    REQUIRE(cistern_pool_scope_begin(pool) == CISTERN_OK);
    std::thread([&] { CHECK(cistern_pool_destroy(pool) == CISTERN_INVALID_STATE); }).join();
    CHECK(cistern_pool_scope_end(pool) == CISTERN_OK);
  }).join();
  int users = 0;
  CHECK(cistern_pool_use_count(pool, &users) == CISTERN_OK);
  CHECK(users == 1);
  CHECK(cistern_pool_destroy(pool) == CISTERN_OK);
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}

// In a process of its own: the shared allocator is the process's.
TEST_CASE("a hook that C++ code has set on the shared allocator is called, and may call back",
          "[c]") {
  const int status = statusOfChild([] {
    cistern_allocator_t a = nullptr;
    if (cistern_default_allocator(0, &a) != CISTERN_OK) std::exit(2);
    cistern_pool_t pool = nullptr;
    if (cistern_pool_create(a, nullptr, &pool) != CISTERN_OK) std::exit(3);
    static int misuses = 0, shortages = 0;
    cistern::allocator(0).setMisuseHook([a](const cistern::Misuse&) {
      ++misuses;
      if (misuses > 1) return;
      int none = 0;  // a wrong free within the report of another
      if (cistern_free(a, &none) != CISTERN_INVALID_POINTER) std::exit(4);
      if (pair(a) != CISTERN_OK) std::exit(5);
    });
    cistern::allocator(0).attachOutOfMemoryObserver([a, pool](const cistern::OutOfMemoryReport&) {
      ++shortages;  // whose call we are in would be waited for
      if (cistern_pool_destroy(pool) != CISTERN_INVALID_STATE) std::exit(6);
      if (pair(a) != CISTERN_OK) std::exit(7);
    });
    int none = 0;
    void* block = nullptr;
    if (cistern_free(a, &none) != CISTERN_INVALID_POINTER || misuses != 2) std::exit(8);
    if (!lastErrorHas("free of ")) std::exit(9);
    const std::size_t huge = std::size_t{1} << 44;
    if (cistern_pool_allocate(pool, huge, nullptr, &block) != CISTERN_OUT_OF_MEMORY) std::exit(10);
    if (shortages != 1) std::exit(11);
    if (cistern_allocate(a, 512, nullptr, &block) != CISTERN_OK) std::exit(12);
    if (cistern_free(a, block) != CISTERN_OK || misuses != 2) std::exit(13);
    if (cistern_pool_destroy(pool) != CISTERN_OK) std::exit(14);
  });
  CHECK(status == 0);
}

TEST_CASE("in a child of fork what is from before may be destroyed, and not used", "[c]") {
  const cistern_allocator_t a = makeSim();
  const cistern_pool_t pool = makePool(a);
  REQUIRE(pair(a) == CISTERN_OK);
  const int status = statusOfChild([&] {
    void* block = nullptr;
    if (cistern_allocate(a, std::size_t{1} << 30, nullptr, &block) != CISTERN_INVALID_STATE)
      std::exit(2);
    if (cistern_empty_cache(a) != CISTERN_INVALID_STATE) std::exit(3);
    if (cistern_pool_destroy(pool) != CISTERN_OK) std::exit(4);
    if (cistern_allocator_destroy(a) != CISTERN_OK) std::exit(5);
    if (cistern_allocator_destroy(a) != CISTERN_INVALID_HANDLE) std::exit(6);
    if (pair(a) != CISTERN_INVALID_HANDLE) std::exit(10);  // its cache is this thread's still
    cistern_allocator_t own = nullptr;                     // of the child's own
    if (cistern_allocator_create_sim(nullptr, "", &own) != CISTERN_OK) std::exit(7);
    if (pair(own) != CISTERN_OK || pair(own) != CISTERN_OK) std::exit(8);
    if (cistern_allocator_destroy(own) != CISTERN_OK) std::exit(9);
  });
  CHECK(status == 0);
  CHECK(pair(a) == CISTERN_OK);
  CHECK(cistern_pool_destroy(pool) == CISTERN_OK);
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}

TEST_CASE("a free names who freed the block before: the program, and not the C API", "[c]") {
  const cistern_allocator_t a = makeSim();
  void* block = nullptr;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(cistern_allocate(a, 512, nullptr, &block) == CISTERN_OK);
    REQUIRE(cistern_free(a, block) == CISTERN_OK);
  }
  CHECK(cistern_free(a, block) == CISTERN_INVALID_POINTER);
  CHECK(lastErrorHas("freed by "));
  CHECK_FALSE(lastErrorHas("cistern_free"));
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}

TEST_CASE("a block of another allocator, and one of a destroyed pool, are refused in words",
          "[c]") {
  const cistern_allocator_t a = makeSim(), other = makeSim();
  void *own = nullptr, *others = nullptr, *of_pool = nullptr;
  REQUIRE(cistern_allocate(a, 512, nullptr, &own) == CISTERN_OK);
  REQUIRE(cistern_allocate(other, 512, nullptr, &others) == CISTERN_OK);
  CHECK(own != others);
  CHECK(cistern_free(a, others) == CISTERN_INVALID_POINTER);
  CHECK(lastErrorHas("never gave it out"));
  CHECK(cistern_free(other, own) == CISTERN_INVALID_POINTER);
  cistern_pool_t pool = nullptr;
  REQUIRE(cistern_pool_create(a, nullptr, &pool) == CISTERN_OK);
  REQUIRE(cistern_pool_allocate(pool, 24 << 20, nullptr, &of_pool) == CISTERN_OK);
  REQUIRE(cistern_free(a, of_pool) == CISTERN_OK);
  REQUIRE(cistern_pool_destroy(pool) == CISTERN_OK);
  REQUIRE(cistern_empty_cache(a) == CISTERN_OK);
  CHECK(cistern_free(a, of_pool) == CISTERN_INVALID_POINTER);
  CHECK(lastErrorHas("its pool or its stream is gone"));
  CHECK_FALSE(lastErrorHas("0xffffffffffffffff"));
  for (const cistern_allocator_t each : {a, other})
    CHECK(cistern_allocator_destroy(each) == CISTERN_OK);
}

TEST_CASE("a snapshot has every byte once", "[c]") {
  cistern::sim::SimConfig config;
  const auto device = cistern::sim::makeDevice(config);
  cistern::CachingAllocator allocator(*device, cistern::Options{});
  const cistern::Stream other = device->createStream().orThrow();
  void* const small = allocator.allocate(700);
  void* const large = allocator.allocate(9 * cistern::kMiB, other);
  allocator.free(allocator.allocate(3 * cistern::kMiB));
  const cistern::Snapshot snapshot = allocator.snapshot();
  std::uint64_t held = 0, asked = 0, backed = 0;
  for (const auto& segment : snapshot.segments) {
    cistern::Address next = segment.address;
    for (const auto& block : segment.blocks) {
      CHECK(block.address == next);
      next += block.bytes;
      if (block.use == cistern::BlockUse::kAllocated) held += block.bytes;
      if (block.use != cistern::BlockUse::kUnmapped) backed += block.bytes;
      asked += block.requested;
      if (block.address == cistern::toAddress(large)) CHECK(block.stream == other);
      if (block.address == cistern::toAddress(small)) CHECK(block.requested == 700);
    }
    CHECK(next == segment.address + segment.bytes);
  }
  const cistern::MemoryStats stats = allocator.memoryStats();
  CHECK(held == std::uint64_t(stats[cistern::Stat::kAllocatedBytes].current));
  CHECK(asked == std::uint64_t(stats[cistern::Stat::kRequestedBytes].current));
  CHECK(backed == std::uint64_t(stats[cistern::Stat::kReservedBytes].current));
  allocator.free(small);
  allocator.free(large);
}
