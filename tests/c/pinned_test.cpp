// Pinned host memory through the C API.
#include <cstring>

#include "tests/c/c_support.hpp"

using namespace cistern::test;

TEST_CASE("pinned memory comes and goes through the C API", "[c]") {
  const cistern_allocator_t a = makeSim();
  void *stream = nullptr, *block = nullptr;
  REQUIRE(cistern_stream_create(a, &stream) == CISTERN_OK);
  REQUIRE(cistern_pinned_allocate(a, 5000, &block) == CISTERN_OK);
  std::memset(block, 7, 5000);
  std::size_t bytes = 0;
  CHECK(cistern_pinned_block_size(a, block, &bytes) == CISTERN_OK);
  CHECK(bytes == 5120);
  CHECK(cistern_pinned_record_stream(a, block, stream) == CISTERN_OK);
  cistern_pinned_statistics_t statistics;
  statistics.size = sizeof statistics;
  REQUIRE(cistern_pinned_statistics(a, &statistics) == CISTERN_OK);
  CHECK(statistics.size == sizeof statistics);
  CHECK(statistics.allocation.current == 1);
  CHECK(statistics.requested_bytes.current == 5000);
  CHECK(statistics.allocated_bytes.current == 5120);
  CHECK(statistics.reserved_bytes.current == 2 << 20);
  CHECK(statistics.num_host_alloc == 1);
  CHECK(cistern_pinned_free(a, block) == CISTERN_OK);
  CHECK(cistern_pinned_free(a, nullptr) == CISTERN_OK);
  CHECK(cistern_stream_destroy(a, stream) == CISTERN_OK);
  CHECK(cistern_pinned_empty_cache(a) == CISTERN_OK);
  CHECK(cistern_pinned_reset_peak_statistics(a) == CISTERN_OK);
  REQUIRE(cistern_pinned_statistics(a, &statistics) == CISTERN_OK);
  CHECK(statistics.reserved_bytes.peak == 0);
  CHECK(statistics.active.current == 0);
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}

TEST_CASE("a stream's end is told to pinned memory too", "[c]") {
  const cistern_allocator_t a = makeSim();
  void *stream = nullptr, *block = nullptr;
  REQUIRE(cistern_stream_create(a, &stream) == CISTERN_OK);
  REQUIRE(cistern_pinned_allocate(a, 64, &block) == CISTERN_OK);
  REQUIRE(cistern_pinned_record_stream(a, block, stream) == CISTERN_OK);
  REQUIRE(cistern_stream_destroy(a, stream) == CISTERN_OK);
  CHECK(cistern_pinned_free(a, block) == CISTERN_OK);
  void* again = nullptr;
  CHECK(cistern_pinned_allocate(a, 64, &again) == CISTERN_OK);
  CHECK(again == block);
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}

TEST_CASE("what is wrong with pinned memory is a status", "[c]") {
  const cistern_allocator_t a = makeSim();
  int other = 0;
  void* block = &other;
  CHECK(cistern_pinned_free(a, &other) == CISTERN_INVALID_POINTER);
  CHECK(lastErrorHas("free of"));
  CHECK(cistern_pinned_record_stream(a, &other, nullptr) == CISTERN_INVALID_POINTER);
  std::size_t bytes = 1;
  CHECK(cistern_pinned_block_size(a, &other, &bytes) == CISTERN_INVALID_POINTER);
  CHECK(bytes == 1);
  CHECK(cistern_pinned_allocate(a, 64, nullptr) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_pinned_set_limit(a, 1 << 20) == CISTERN_OK);
  std::uint64_t limit = 0;
  CHECK(cistern_pinned_limit(a, &limit) == CISTERN_OK);
  CHECK(limit == 1 << 20);
  CHECK(cistern_pinned_allocate(a, 64, &block) == CISTERN_HOST_OUT_OF_MEMORY);
  CHECK(lastErrorHas("the limit is 1.00 MiB"));
  CHECK(block == &other);
  CHECK(cistern_pinned_set_limit(a, UINT64_MAX) == CISTERN_OK);
  REQUIRE(cistern_pinned_allocate(a, 64, &block) == CISTERN_OK);
  CHECK(cistern_pinned_free(a, block) == CISTERN_OK);
  CHECK(cistern_pinned_free(a, block) == CISTERN_INVALID_POINTER);
  cistern_pinned_statistics_t statistics;
  statistics.size = 100;
  CHECK(cistern_pinned_statistics(a, &statistics) == CISTERN_INVALID_ARGUMENT);
  CHECK(lastErrorHas("cistern_pinned_statistics_t::size is 100"));
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}
