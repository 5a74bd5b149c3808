// What is no handle is told, and nothing happens.
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cistern/allocator.hpp"
#include "cistern/sim.hpp"
#include "tests/c/c_support.hpp"

using namespace cistern::test;

namespace {

template <class Handle>
Handle handleOf(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}
template <class To, class From>
To as(From handle) {
  return reinterpret_cast<To>(handle);
}

// Every call that takes a handle, with arguments that are right otherwise.
void checkRefused(cistern_allocator_t a) {
  void* out = nullptr;
  std::size_t bytes = 64;
  std::uint64_t number = 0, more = 0;
  char text[64];
  cistern_location_t location = CISTERN_LOCATION_HOST;
  cistern_pool_t pool = nullptr;
  cistern_capture_t capture = nullptr;
  cistern_statistics_t statistics{};
  statistics.size = sizeof(statistics);
  cistern_pinned_statistics_t pinned{};
  pinned.size = sizeof(pinned);
  const std::vector<std::function<cistern_status_t()>> calls = {
      [&] { return cistern_allocator_destroy(a); },
      [&] { return cistern_allocate(a, 512, nullptr, &out); },
      [&] { return cistern_free(a, nullptr); },
      [&] { return cistern_free(a, &bytes); },
      [&] { return cistern_record_stream(a, nullptr, nullptr); },
      [&] { return cistern_register_stream(a, nullptr); },
      [&] { return cistern_forget_stream(a, nullptr); },
      [&] { return cistern_empty_cache(a); },
      [&] { return cistern_pinned_allocate(a, 512, &out); },
      [&] { return cistern_pinned_free(a, nullptr); },
      [&] { return cistern_pinned_record_stream(a, nullptr, nullptr); },
      [&] { return cistern_pinned_empty_cache(a); },
      [&] { return cistern_pinned_block_size(a, nullptr, &bytes); },
      [&] { return cistern_pinned_set_limit(a, 1); },
      [&] { return cistern_pinned_limit(a, &number); },
      [&] { return cistern_pinned_statistics(a, &pinned); },
      [&] { return cistern_pinned_reset_peak_statistics(a); },
      [&] { return cistern_block_size(a, nullptr, &bytes); },
      [&] { return cistern_base_allocation(a, nullptr, &out, &bytes); },
      [&] { return cistern_location_of(a, nullptr, &location); },
      [&] { return cistern_stream_create(a, &out); },
      [&] { return cistern_stream_destroy(a, nullptr); },
      [&] { return cistern_stream_synchronize(a, nullptr); },
      [&] { return cistern_stream_begin_capture(a, nullptr); },
      [&] { return cistern_stream_end_capture(a, nullptr); },
      [&] { return cistern_pool_create(a, nullptr, &pool); },
      [&] { return cistern_capture_begin(a, nullptr, nullptr, &capture); },
      [&] { return cistern_statistics(a, &statistics); },
      [&] { return cistern_reset_peak_statistics(a); },
      [&] { return cistern_statistics_json(a, text, &bytes); },
      [&] { return cistern_options(a, text, &bytes); },
      [&] { return cistern_backend(a, text, &bytes); },
      [&] { return cistern_set_limit(a, 1); },
      [&] { return cistern_limit(a, &number); },
      [&] { return cistern_set_memory_fraction(a, 0.5); },
      [&] { return cistern_memory_info(a, &number, &more); },
      [&] { return cistern_snapshot(a, "snapshot_of_no_allocator.json"); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    INFO("call " << i);
    CHECK(calls[i]() == CISTERN_INVALID_HANDLE);
  }
  CHECK((out == nullptr && pool == nullptr && capture == nullptr));
  CHECK((bytes == 64 && number == 0 && statistics.all.allocation.current == 0));
  CHECK(location == CISTERN_LOCATION_HOST);
}

void checkRefused(cistern_pool_t p) {
  void* out = nullptr;
  int users = 0;
  cistern_pool_id_t id{};
  const std::vector<cistern_status_t> said = {
      cistern_pool_destroy(p),
      cistern_pool_id(p, &id),
      cistern_pool_use_count(p, &users),
      cistern_pool_allocate(p, 512, nullptr, &out),
      cistern_pool_allocate_aligned(p, 512, 4096, nullptr, &out),
      cistern_pool_empty_cache(p),
      cistern_pool_scope_begin(p),
      cistern_pool_scope_end(p),
      cistern_pool_stream_scope_begin(p, nullptr),
      cistern_pool_stream_scope_end(p, nullptr),
      cistern_pools_sleep(&p, 1, nullptr, CISTERN_CONTENTS_SAVE, nullptr),
      cistern_pools_wake(&p, 1, 1, nullptr),
      cistern_pool_is_asleep(p, &users),
      cistern_pool_set_contents(p, &users, CISTERN_CONTENTS_DROP),
  };
  CHECK(said == std::vector<cistern_status_t>(said.size(), CISTERN_INVALID_HANDLE));
  CHECK(out == nullptr);
}

void checkRefused(cistern_capture_t c) {
  cistern_pool_id_t id{};
  int idle = 0;
  const std::vector<cistern_status_t> said = {
      cistern_capture_launched(c),
      cistern_capture_idle(c, &idle),
      cistern_capture_include_stream(c, nullptr),
      cistern_capture_end(c),
      cistern_capture_launching(c, nullptr),
      cistern_capture_pool_id(c, &id),
      cistern_capture_release(c),
  };
  CHECK(said == std::vector<cistern_status_t>(said.size(), CISTERN_INVALID_HANDLE));
}

}  // namespace

TEST_CASE("numbers that are no handles are refused by every call", "[c]") {
  for (const std::uintptr_t number :
       {std::uintptr_t{0}, std::uintptr_t{1}, ~std::uintptr_t{0}, std::uintptr_t{0x12345678},
        std::uintptr_t{1} << 24, std::uintptr_t{1} << 63}) {
    INFO(number);
    checkRefused(handleOf<cistern_allocator_t>(number));
    checkRefused(handleOf<cistern_pool_t>(number));
    checkRefused(handleOf<cistern_capture_t>(number));
  }
  int here = 0;  // an address is none either
  checkRefused(as<cistern_allocator_t>(&here));
}

TEST_CASE("no number is taken for the handle of an allocator that has none", "[c]") {
  const std::unique_ptr<cistern::Device> device = cistern::sim::makeDevice({});
  cistern::CachingAllocator allocator(*device);
  const cistern_allocator_t a = makeSim();
  REQUIRE(pair(a) == CISTERN_OK);
  for (const std::uintptr_t number :
       {std::uintptr_t{0}, ~std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{1} << 24}) {
    allocator.free(allocator.allocate(512, cistern::Stream{}));  // its cache is the last one used
    checkRefused(handleOf<cistern_allocator_t>(number));
  }
  CHECK(pair(a) == CISTERN_OK);
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
  allocator.free(allocator.allocate(512, cistern::Stream{}));
  checkRefused(a);
}

TEST_CASE("a handle of another type is refused, and named", "[c]") {
  const cistern_allocator_t a = makeSim();
  const cistern_pool_t pool = makePool(a);
  void* stream = nullptr;
  cistern_capture_t capture = nullptr;
  REQUIRE(cistern_stream_create(a, &stream) == CISTERN_OK);
  REQUIRE(cistern_stream_begin_capture(a, stream) == CISTERN_OK);
  REQUIRE(cistern_capture_begin(a, stream, nullptr, &capture) == CISTERN_OK);
  checkRefused(as<cistern_allocator_t>(pool));
  CHECK(lastErrorHas("is the handle of a pool; an allocator is needed"));
  checkRefused(as<cistern_allocator_t>(capture));
  checkRefused(as<cistern_pool_t>(a));
  checkRefused(as<cistern_pool_t>(capture));
  checkRefused(as<cistern_capture_t>(a));
  checkRefused(as<cistern_capture_t>(pool));
  cistern_capture_t second = nullptr;
  CHECK(cistern_capture_begin(a, stream, as<cistern_pool_t>(a), &second) == CISTERN_INVALID_HANDLE);
  CHECK(cistern_capture_release(capture) == CISTERN_OK);
  CHECK(cistern_stream_end_capture(a, stream) == CISTERN_OK);
  CHECK(cistern_pool_destroy(pool) == CISTERN_OK);
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}

TEST_CASE("a number that is no handle is said to be ended, of another type, or never given out",
          "[c]") {
  const auto said = [](cistern_allocator_t of) {
    CHECK(cistern_empty_cache(of) == CISTERN_INVALID_HANDLE);
    return std::string(cistern_last_error());
  };
  const cistern_allocator_t a = makeSim(), destroyed = makeSim();
  const cistern_pool_t pool = makePool(a), former = makePool(a);
  void* stream = nullptr;
  cistern_capture_t capture = nullptr;
  REQUIRE(cistern_stream_create(a, &stream) == CISTERN_OK);
  REQUIRE(cistern_stream_begin_capture(a, stream) == CISTERN_OK);
  REQUIRE(cistern_capture_begin(a, stream, nullptr, &capture) == CISTERN_OK);
  CHECK(said(as<cistern_allocator_t>(capture))
            .ends_with(" is the handle of a capture; an allocator is needed"));
  REQUIRE(cistern_capture_release(capture) == CISTERN_OK);
  REQUIRE(cistern_stream_end_capture(a, stream) == CISTERN_OK);
  REQUIRE(cistern_pool_destroy(former) == CISTERN_OK);
  REQUIRE(cistern_allocator_destroy(destroyed) == CISTERN_OK);
  CHECK(said(destroyed).ends_with(
      " is the handle of an allocator that was destroyed; an allocator is needed"));
  CHECK(said(as<cistern_allocator_t>(former))
            .ends_with(" of a pool that was destroyed; an allocator is needed"));
  CHECK(said(as<cistern_allocator_t>(capture))
            .ends_with(" of a capture that was released; an allocator is needed"));
  CHECK(said(as<cistern_allocator_t>(pool)).ends_with(" of a pool; an allocator is needed"));
  const auto number = reinterpret_cast<std::uintptr_t>(a);
  constexpr std::uintptr_t kNextGeneration = std::uintptr_t{1} << 24;
  int here = 0;
  for (const std::uintptr_t never : {std::uintptr_t{7}, number + kNextGeneration,
                                     ~std::uintptr_t{0}, reinterpret_cast<std::uintptr_t>(&here)}) {
    CHECK(said(handleOf<cistern_allocator_t>(never))
              .ends_with(" was never given out as a handle; an allocator is needed"));
  }
  CHECK(said(nullptr) == "the handle of an allocator is null");
  CHECK(cistern_pool_destroy(former) == CISTERN_INVALID_HANDLE);
  CHECK(lastErrorHas("is the handle of a pool that was destroyed; a pool is needed"));
  CHECK(cistern_pool_destroy(pool) == CISTERN_OK);
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}

TEST_CASE("what was destroyed stays so when its place is used again", "[c]") {
  std::set<cistern_allocator_t> former;
  for (int i = 0; i < 20; ++i) {
    const cistern_allocator_t a = makeSim();
    CHECK(former.insert(a).second);
    REQUIRE(pair(a) == CISTERN_OK);  // this thread remembers it
    REQUIRE(cistern_allocator_destroy(a) == CISTERN_OK);
    checkRefused(a);
  }
  const cistern_allocator_t now = makeSim();
  for (const cistern_allocator_t a : former) CHECK(pair(a) == CISTERN_INVALID_HANDLE);
  CHECK(pair(now) == CISTERN_OK);
  CHECK(cistern_allocator_destroy(now) == CISTERN_OK);
}

TEST_CASE("there may be thousands of handles, and threads may use many allocators in turn", "[c]") {
  std::vector<cistern_allocator_t> allocators;
  for (int i = 0; i < 20; ++i) allocators.push_back(makeSim());
  std::vector<cistern_pool_t> pools;
  for (int i = 0; i < 2000; ++i) pools.push_back(makePool(allocators[std::size_t(i) % 20]));
  CHECK(std::set<cistern_pool_t>(pools.begin(), pools.end()).size() == pools.size());
  for (int round = 0; round < 3; ++round) {
    for (const cistern_allocator_t a : allocators) CHECK(pair(a) == CISTERN_OK);
  }
  CHECK(cistern_allocator_destroy(allocators[0]) == CISTERN_INVALID_STATE);
  CHECK(lastErrorHas("100 pools, 0 captures, 0 holds and 0 hooks"));
  for (const cistern_pool_t pool : pools) CHECK(cistern_pool_destroy(pool) == CISTERN_OK);
  for (const cistern_pool_t pool : pools) CHECK(cistern_pool_destroy(pool) != CISTERN_OK);
  for (const cistern_allocator_t a : allocators) CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}
