// A heap's memory of who freed what.
#include <new>
#include <thread>

#include "allocator/base/thread_number.hpp"
#include "allocator/engine/heap/frees.hpp"
#include "allocator/layout/block.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {
namespace {

const void* callerOf(std::uint32_t free) { return toPointer(0x1000 + free); }
Address placeOf(std::uint32_t free) { return (Address{1} << 30) + free * 8 * kGranule; }

/// The free with that number, of a block of four granules.
void noteFree(FreeLog& log, std::uint32_t free) {
  log.note(placeOf(free), 4, callerOf(free), free);
}

/// Whether just the last of `frees`, so many of them, are remembered, at both ends of their blocks.
bool remembersLast(const FreeLog& log, std::uint32_t count, std::uint32_t frees) {
  for (std::uint32_t free = 0; free < frees; ++free) {
    const bool expected = free + count >= frees;
    for (const Address address : {placeOf(free), placeOf(free) + 4 * kGranule - 1}) {
      const FreeLog::Entry* const entry = log.find(address);
      if ((entry != nullptr) != expected) return false;
      if (entry && (entry->caller != callerOf(free) || entry->thread != free)) return false;
    }
    if (log.find(placeOf(free) + 4 * kGranule) != nullptr) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a log remembers the last frees", "[engine][part]") {
  constexpr std::uint32_t kMost = FreeLog::kMost;
  FreeLog log;
  for (std::uint32_t free = 0; free < 3 * kMost + 2; ++free) {
    CAPTURE(free);
    REQUIRE(remembersLast(log, std::min(kMost, free), free));
    noteFree(log, free);
  }
}

TEST_CASE("of several frees of one place the youngest is told", "[engine][part]") {
  FreeLog log;
  for (std::uint32_t free = 1; free <= 7; ++free) {
    log.note(placeOf(1), 4, callerOf(free), free);
    CHECK(log.find(placeOf(1))->thread == free);
  }
  log.note(placeOf(1) + 2 * kGranule, 4, callerOf(8), 8);  // another block, over half of it
  CHECK(log.find(placeOf(1))->thread == 7);
  CHECK(log.find(placeOf(1) + 2 * kGranule)->thread == 8);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("a log that cannot grow goes on with what it has, and grows later", "[engine][part]") {
  FreeLog log;
  for (std::uint32_t free = 0; free < 4; ++free) noteFree(log, free);
  {
    const AtHostAllocations none([] { throw std::bad_alloc(); });
    for (std::uint32_t free = 4; free < 7; ++free) noteFree(log, free);
  }
  CHECK(remembersLast(log, 4, 7));
  noteFree(log, 7);
  for (std::uint32_t free = 8; free < 12; ++free) noteFree(log, free);
  CHECK(remembersLast(log, 8, 12));
}

TEST_CASE("a log that has no host memory at all remembers nothing", "[engine][part]") {
  FreeLog log;
  const AtHostAllocations none([] { throw std::bad_alloc(); });
  for (std::uint32_t free = 0; free < 9; ++free) noteFree(log, free);
  CHECK(log.find(placeOf(8)) == nullptr);
}

#endif

TEST_CASE("a thread keeps its number, and no two have the same", "[engine][part][threads]") {
  const std::uint32_t own = threadNumber();
  std::uint32_t other = 0, other_again = 0;
  std::thread([&] {
    other = threadNumber();
    other_again = threadNumber();
  }).join();
  CHECK(threadNumber() == own);
  CHECK(other != own);
  CHECK(other == other_again);
  CHECK(own != 0);
}

}  // namespace cistern::test
