// Blocks on their way to the cache that owns them.
#include <algorithm>
#include <deque>
#include <thread>
#include <vector>

#include "allocator/engine/cache/thread_cache.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using ownership::Where;
using RemoteAnswer = RemoteFrees::Answer;

constexpr std::uint32_t kCaches = ownership::holderOf(4, Where::kHeld);
constexpr std::uint32_t kLargestSent = std::uint32_t(RemoteFrees::kMostBytes >> kGranuleShift);

struct RemoteRig {
  Block& held(std::uint32_t granules) {
    Block& block = blocks.emplace_back();
    block.granules = granules;
    block.use = {1, kCaches, Stream{}, nullptr};
    return block;
  }
  RemoteAnswer add(Block& block) { return frees.add(block, kCaches, WhoFreed(nullptr, 3)); }
  static std::vector<Block*> linked(Block* first) {
    std::vector<Block*> all;
    for (Block* b = first; b; b = static_cast<Block*>(b->use.uses)) all.push_back(b);
    return all;
  }
  static Where whereIs(const Block& block) { return ownership::whereIs(ownership::load(block)); }

  std::deque<Block> blocks;
  RemoteFrees frees;
};

}  // namespace

TEST_CASE("what others have freed arrives, the last that came first", "[engine][part]") {
  RemoteRig rig;
  CHECK_FALSE(rig.frees.any());
  CHECK(rig.frees.takeAll() == nullptr);
  std::vector<Block*> sent;
  for (int i = 0; i < 3; ++i) {
    sent.insert(sent.begin(), &rig.held(4));
    CHECK(rig.add(*sent.front()) == RemoteAnswer::kTaken);
    CHECK(RemoteRig::whereIs(*sent.front()) == Where::kRemoteFreed);
  }
  CHECK(rig.frees.any());
  CHECK(RemoteRig::linked(rig.frees.takeAll()) == sent);
  CHECK_FALSE(rig.frees.any());
}

TEST_CASE("beyond a megabyte there is no room on the way, and the block is as it was",
          "[engine][part]") {
  RemoteRig rig;
  Block& large = rig.held(kLargestSent);
  Block& small = rig.held(1);
  CHECK(rig.add(large) == RemoteAnswer::kTaken);
  CHECK(rig.add(small) == RemoteAnswer::kNoRoom);
  CHECK(RemoteRig::whereIs(small) == Where::kHeld);
  CHECK(rig.frees.takeAll() == &large);
  CHECK(rig.add(small) == RemoteAnswer::kTaken);
  CHECK(rig.add(rig.held(kLargestSent)) == RemoteAnswer::kNoRoom);
  CHECK(rig.add(rig.held(kLargestSent - 1)) == RemoteAnswer::kTaken);
}

TEST_CASE("a block that somebody else has freed is not sent", "[engine][part]") {
  RemoteRig rig;
  Block& block = rig.held(4);
  CHECK(rig.add(block) == RemoteAnswer::kTaken);
  CHECK(rig.add(block) == RemoteAnswer::kNotHeld);
  CHECK(RemoteRig::linked(rig.frees.takeAll()) == std::vector<Block*>{&block});
  ownership::store(block, ownership::moved(kCaches, Where::kCached));
  CHECK(rig.add(block) == RemoteAnswer::kNotHeld);
  CHECK(RemoteRig::whereIs(block) == Where::kCached);
  CHECK_FALSE(rig.frees.any());
}

TEST_CASE("a way that is closed takes nothing until it is open again", "[engine][part]") {
  RemoteRig rig;
  Block& block = rig.held(4);
  Block& late = rig.held(4);
  CHECK(rig.add(block) == RemoteAnswer::kTaken);
  CHECK(rig.frees.close() == &block);
  CHECK_FALSE(rig.frees.any());
  CHECK(rig.frees.close() == nullptr);
  CHECK(rig.frees.takeAll() == nullptr);
  CHECK(rig.add(late) == RemoteAnswer::kNoRoom);
  CHECK(RemoteRig::whereIs(late) == Where::kHeld);
  rig.frees.open();
  CHECK(rig.add(late) == RemoteAnswer::kTaken);
}

TEST_CASE("a block remembers the code and the thread that freed it, as far as they fit in a word",
          "[engine][part]") {
  const void* const code = toPointer(0x7fff'1234'5678);
  for (const std::uint32_t thread : {0u, 1u, 0xffffu}) {
    const WhoFreed who(WhoFreed(code, thread).word());
    CHECK(who.code() == code);
    CHECK(who.thread() == thread);
  }
  CHECK(WhoFreed(code, 0x1'0000).thread() == 0);
  CHECK(WhoFreed(code, 0x1'0000).code() == code);
}

TEST_CASE("what many threads send while one takes arrives once each", "[engine][part][threads]") {
  constexpr std::size_t kEach = 500;
  RemoteRig rig;
  for (std::size_t i = 0; i < 3 * kEach; ++i) rig.held(1);
  std::vector<Block*> refused[3];
  std::vector<std::thread> threads;
  std::atomic<int> sending{3};
  for (std::size_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = thread * kEach; i < (thread + 1) * kEach; ++i) {
        if (rig.add(rig.blocks[i]) != RemoteAnswer::kTaken)
          refused[thread].push_back(&rig.blocks[i]);
      }
      --sending;
    });
  }
  std::vector<Block*> all;
  const auto take = [&](Block* first) {
    for (Block* block : RemoteRig::linked(first)) all.push_back(block);
  };
  while (sending > 1) take(rig.frees.takeAll());
  take(rig.frees.close());
  for (std::thread& thread : threads) thread.join();
  for (const auto& blocks : refused) all.insert(all.end(), blocks.begin(), blocks.end());
  std::sort(all.begin(), all.end());
  CHECK(all.size() == 3 * kEach);
  CHECK(std::unique(all.begin(), all.end()) == all.end());
}

}  // namespace cistern::test
