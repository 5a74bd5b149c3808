// Who looks after a block, in one word.
#include "allocator/engine/ground/ownership.hpp"

#include <atomic>
#include <barrier>

#include "allocator/base/sanitizers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

using ownership::Where;

constexpr std::uint32_t kSomeone = 17;
constexpr std::uint32_t kTheirs = ownership::holderOf(kSomeone, Where::kHeld);

Block blockOf(std::uint32_t holder) {
  Block block;
  block.use = {100, holder, Stream{}, nullptr};
  return block;
}

}  // namespace

TEST_CASE("a word says whose a block is and where it lies, for every owner", "[engine][part]") {
  constexpr std::uint32_t kLast = (1u << ownership::kOwnerBits) - 1;
  for (const std::uint32_t owner : {0u, 1u, kSomeone, kLast - 1, kLast}) {
    for (const Where where : {Where::kHeld, Where::kCached, Where::kRemoteFreed}) {
      const std::uint32_t holder = ownership::holderOf(owner, where);
      CHECK(ownership::isOwned(holder));
      CHECK(ownership::ownerOf(holder) == owner);
      CHECK(ownership::whereIs(holder) == where);
      CHECK(ownership::moved(holder, Where::kHeld) == ownership::holderOf(owner, Where::kHeld));
    }
  }
}

TEST_CASE("a block that the heap looks after says how much was asked for, beyond 32 bits",
          "[engine][part]") {
  for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{0xffff'ffff},
                                    std::uint64_t{1} << 32, (std::uint64_t{1} << 40) + 5}) {
    Block block;
    block.use = ownership::heapsOwn(bytes, Stream{3});
    CHECK_FALSE(ownership::isOwned(ownership::load(block)));
    CHECK(ownership::requested(block) == bytes);
    CHECK(ownership::heldByProgram(block));
    CHECK(block.use.stream == Stream{3});
    CHECK(block.use.uses == nullptr);
  }
}

TEST_CASE("the program has a block that is held, and none that is cached or on its way",
          "[engine][part]") {
  Block block = blockOf(kTheirs);
  CHECK(ownership::heldByProgram(block));
  CHECK(ownership::requested(block) == 100);
  for (const Where where : {Where::kCached, Where::kRemoteFreed}) {
    ownership::store(block, ownership::moved(kTheirs, where));
    CHECK_FALSE(ownership::heldByProgram(block));
    CHECK(ownership::requested(block) == 100);
  }
  ownership::leaveToHeap(block, Stream{8});
  CHECK(ownership::heldByProgram(block));
  CHECK(ownership::load(block) == 0);
  CHECK(block.use.stream == Stream{8});
}

TEST_CASE("an owner takes its block from where it has seen it", "[engine][part]") {
  for (const Where from : {Where::kHeld, Where::kRemoteFreed}) {
    Block block = blockOf(ownership::moved(kTheirs, from));
    CHECK(ownership::take(block, kTheirs, from));
    CHECK(ownership::load(block) == ownership::moved(kTheirs, Where::kCached));
  }
}

TEST_CASE("who frees what another thread was faster to free changes nothing", "[engine][part]") {
  Block block = blockOf(kTheirs);
  const std::uint32_t seen = ownership::load(block);
  const std::uint32_t freed = ownership::moved(seen, Where::kRemoteFreed);
  CHECK(ownership::change(block, seen, freed));
  CHECK_FALSE(ownership::change(block, seen, freed));
  CHECK_FALSE(ownership::change(block, seen, 0));
  CHECK(ownership::load(block) == freed);
  if constexpr (ownership::kExactFrees) {  // the owner too
    CHECK_FALSE(ownership::take(block, kTheirs));
    CHECK(ownership::load(block) == freed);
  }
}

TEST_CASE("of threads that free a block at once exactly one succeeds", "[engine][part][threads]") {
  constexpr int kRounds = 2'000;
  // The owner's is a plain store in a release build.
  const bool owner_too = ownership::kExactFrees;
  Block block;
  std::barrier step(3);
  std::atomic<int> freed{0};
  int wrong = 0;
  const auto play = [&](std::size_t index) {
    for (int i = 0; i < kRounds; ++i) {
      if (index == 0) ownership::store(block, kTheirs);
      step.arrive_and_wait();
      if (index == 0 && owner_too) {
        freed += ownership::take(block, kTheirs);
      } else {
        freed += ownership::change(block, kTheirs, ownership::moved(kTheirs, Where::kRemoteFreed));
      }
      step.arrive_and_wait();
      if (index == 0) wrong += freed.exchange(0) != 1;
    }
  };
  onThreads(3, play);
  CHECK(wrong == 0);
}

}  // namespace cistern::test
