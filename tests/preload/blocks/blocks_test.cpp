// Which pointers are Cistern's, by several threads at once.
#include "interop/preload/served/blocks.hpp"

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

namespace cistern::preload::GPU_NAMESPACE {

class Context {};

namespace {

constexpr std::uint64_t kStep = 512;

// There is one a process.
Blocks& theBlocks() {
  static Blocks& one = *new Blocks;
  return one;
}

}  // namespace

TEST_CASE("a block is found until it is taken, once", "[preload][blocks]") {
  Blocks& blocks = theBlocks();
  Context context, other;
  for (std::uint64_t i = 1; i <= 10'000; ++i)
    blocks.add(i * kStep, {i % 2 == 0 ? &context : &other, i, {}, i});
  CHECK(blocks.bytesOf(context) == 2 * (5'000 * 5'001 / 2));
  for (std::uint64_t i = 1; i <= 10'000; i += 3) {
    const std::optional<ServedBlock> taken = blocks.take(i * kStep);
    REQUIRE(taken);
    CHECK((taken->bytes == i && taken->marks == i));
    CHECK_FALSE(blocks.take(i * kStep));
    CHECK_FALSE(blocks.find(i * kStep));
  }
  CHECK(blocks.around(2 * kStep + 1)->address == 2 * kStep);
  CHECK_FALSE(blocks.around(2 * kStep + 2));
  CHECK_FALSE(blocks.take(2 * kStep + 1));
  const std::uint64_t held = blocks.bytesOf(other);
  CHECK(blocks.drop(other) == held);
  CHECK(blocks.bytesOf(other) == 0);
  CHECK_FALSE(blocks.take(3 * kStep));
  blocks.add(3 * kStep, {&context, 7, {}, 0});
  CHECK(blocks.take(3 * kStep)->bytes == 7);
  (void)blocks.drop(context);
}

TEST_CASE("a pointer into a block, close to its beginning, is none of its", "[preload][blocks]") {
  Blocks& blocks = theBlocks();
  Context context;
  for (std::uint64_t into = 1; into < 8; ++into) {
    blocks.add(7 * kStep, {&context, 9, {}, 0});
    CHECK_FALSE(blocks.take(7 * kStep + into));
    CHECK_FALSE(blocks.find(7 * kStep + into));
    CHECK(blocks.take(7 * kStep)->bytes == 9);
    CHECK_FALSE(blocks.take(7 * kStep + into));
  }
}

TEST_CASE("a block that is shared is so until it is taken", "[preload][blocks]") {
  Blocks& blocks = theBlocks();
  Context context;
  blocks.add(5 * kStep, {&context, 7, {}, 3});
  blocks.share(5 * kStep);
  blocks.share(6 * kStep);  // there is none
  CHECK(blocks.find(5 * kStep)->marks == (ServedBlock::kShared | 3));
  const std::optional<ServedBlock> taken = blocks.take(5 * kStep);
  REQUIRE(taken);
  CHECK(taken->marks == (ServedBlock::kShared | 3));
  blocks.add(5 * kStep, {&context, 7, {}, 0});
  CHECK(blocks.take(5 * kStep)->marks == 0);
}

// As in a program: an address is allocated and freed again and again, by whichever thread, while
// new ones make the tables let go of what is free.
TEST_CASE("threads hand blocks to each other, and look at them", "[preload][blocks]") {
  constexpr std::size_t kThreads = 4, kAddresses = 4'000;
  constexpr int kRounds = 20'000;
  Blocks& blocks = theBlocks();
  Context context;
  std::vector<std::atomic<bool>> held(kAddresses);  // what the allocator knows
  std::atomic<int> wrong{0};
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random{unsigned(t)};
      for (int round = 0; round < kRounds; ++round) {
        // A few are used again and again.
        const std::size_t which = random() % (round % 4 == 0 ? kAddresses : 16);
        const Address address = (which + 1) * kStep;
        bool free = false;
        if (held[which].compare_exchange_strong(free, true)) {
          blocks.add(address, {&context, which + 1, {}, 0});
        } else if (const std::optional<ServedBlock> taken = blocks.take(address)) {
          wrong += taken->bytes != which + 1;
          held[which] = false;
        }
      }
    });
  }
  std::thread looks([&] {
    while (!ended) {
      wrong += blocks.bytesOf(context) > kAddresses * (kAddresses + 1) / 2;
      const std::optional<Blocks::Around> found = blocks.around(kStep);
      wrong += found && found->block.bytes != 1;
    }
  });
  for (std::thread& thread : threads) thread.join();
  ended = true;
  looks.join();
  CHECK(wrong == 0);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < kAddresses; ++i) bytes += held[i] ? i + 1 : 0;
  CHECK(blocks.drop(context) == bytes);
}

}  // namespace cistern::preload::GPU_NAMESPACE
