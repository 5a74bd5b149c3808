// Blocks that processes share by name.
#include "interop/sharing/shared_blocks.hpp"

#include <atomic>
#include <thread>

#include <unistd.h>

#include "interop/sharing/passing.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

using sharing::BlockName;
using sharing::OpenedBlock;
using sharing::OpenedBlocks;
using sharing::SharedBlocks;

constexpr std::size_t kBytes = 3 * kMiB;

BlockName share(SharedBlocks& shared, SimRig& rig, void* block) {
  return shared.share(block, rig.allocator.exportBlock(block), rig.allocator.blockSize(block)).name;
}

void fill(SimRig& rig, Address at, std::uint32_t seed) {
  rig.work.fill(Stream{}, at, kBytes, seed);
  REQUIRE(rig.work.mismatches() == 0);  // it has run
}

}  // namespace

TEST_CASE("another process reads and writes a shared block", "[sharing]") {
  SimRig rig("backing:pages");
  SharedBlocks shared;
  void* const before = rig.allocator.allocate(kBytes);
  void* const block = rig.allocator.allocate(kBytes);
  fill(rig, toAddress(block), 1);
  const BlockName name = share(shared, rig, block);
  CHECK(statusOfChild([&] {
          SimRig child("backing:pages");
          OpenedBlocks opened;
          const OpenedBlock got = opened.open(child.allocator, name);
          if (got.bytes != kBytes) _exit(2);
          const Address at = toAddress(got.pages.get()) + got.offset;
          child.work.verify(Stream{}, at, kBytes, 1);
          child.work.fill(Stream{}, at, kBytes, 2);
          _exit(child.work.mismatches() == 0 ? 0 : 1);
        }) == 0);
  rig.work.verify(Stream{}, toAddress(block), kBytes, 2);
  CHECK(rig.work.mismatches() == 0);
  for (void* freed : {before, block}) {
    shared.freed(freed);
    rig.allocator.free(freed);
  }
  rig.allocator.emptyCache();
  CHECK(takenOf(rig.sim()) == 0);
}

TEST_CASE("nobody guesses the key of a shared block", "[sharing]") {
  SimRig rig("backing:pages");
  SharedBlocks shared;
  BlockName name;
  for (int i = 0; i < 8; ++i) name = share(shared, rig, rig.allocator.allocate(kBytes));
  CHECK(name.key > UINT32_MAX);  // of 64 random bits: lower once in four thousand million times
  CHECK_THROWS_WITH(sharing::askFor(name.socket, name.key + 1),
                    Catch::Matchers::ContainsSubstring("has been freed"));
}

TEST_CASE("a block that was freed is shared no more", "[sharing]") {
  SimRig rig("backing:pages"), other("backing:pages");
  SharedBlocks shared;
  OpenedBlocks opened;
  void* const block = rig.allocator.allocate(kBytes);
  const BlockName name = share(shared, rig, block);
  CHECK(share(shared, rig, block).key == name.key);
  CHECK(shared.find(block)->name.key == name.key);
  CHECK(shared.named(name));
  CHECK_FALSE(shared.named({"cistern-other", name.key}));
  shared.freed(block);
  rig.allocator.free(block);
  CHECK_FALSE(shared.find(block));
  CHECK_THROWS_WITH(opened.open(other.allocator, name),
                    Catch::Matchers::ContainsSubstring("has been freed"));
  rig.allocator.emptyCache();
  CHECK(takenOf(rig.sim()) == 0);
}

TEST_CASE("a child of fork frees what its parent shares, whatever the parent's threads do",
          "[sharing]") {
  SimRig rig("backing:pages");
  SharedBlocks shared;
  void* const block = rig.allocator.allocate(200 * kMiB);
  const BlockName name = share(shared, rig, block);
  std::atomic<bool> end{false};
  std::thread asks([&] {
    while (!end) (void)sharing::askFor(name.socket, name.key);  // the lock is held for most of it
  });
  CHECK(allChildrenExit(100, [&] {
    shared.freed(block);
    _exit(shared.find(block) || shared.named(name) ? 1 : 0);
  }));
  end = true;
  asks.join();
  shared.freed(block);
  rig.allocator.free(block);
}

TEST_CASE("blocks of one page are opened at one address, while somebody uses it", "[sharing]") {
  SimRig rig("backing:pages"), other("backing:pages");
  SharedBlocks shared;
  OpenedBlocks opened;
  std::vector<std::shared_ptr<void>> users;
  for (int i = 0; i < 100; ++i) {
    void* const block = rig.allocator.allocate(2 * kKiB);
    const BlockName name = share(shared, rig, block);
    users.push_back(opened.open(other.allocator, name).pages);
    CHECK(users.back() == users.front());
    if (i % 2 == 1) shared.freed(block);
  }
  CHECK(countOf(other.sim(), Call::kImportPage) == 1);
  users.clear();
  CHECK(countOf(other.sim(), Call::kUnmap) == 1);
  void* const block = rig.allocator.allocate(2 * kKiB);
  CHECK(opened.open(other.allocator, share(shared, rig, block)).pages != nullptr);
  CHECK(countOf(other.sim(), Call::kImportPage) == 2);
}

TEST_CASE("a block that is open already is not asked for again", "[sharing]") {
  SimRig rig("backing:pages"), other("backing:pages");
  SharedBlocks shared;
  OpenedBlocks opened;
  void* const block = rig.allocator.allocate(kBytes);
  const BlockName name = share(shared, rig, block);
  const OpenedBlock first = opened.open(other.allocator, name);
  shared.freed(block);  // now nobody would answer
  const OpenedBlock again = opened.open(other.allocator, name);
  CHECK(again.pages == first.pages);
  CHECK(again.offset == first.offset);
  CHECK(again.bytes == kBytes);
}

TEST_CASE("what an allocator has shared ends with it", "[sharing]") {
  SimRig rig("backing:pages"), kept("backing:pages"), other("backing:pages");
  SharedBlocks shared;
  OpenedBlocks opened;
  void* const gone = rig.allocator.allocate(kBytes);
  (void)kept.allocator.allocate(256 * kMiB);  // both devices begin at the same address
  void* const stays = kept.allocator.allocate(kBytes);
  REQUIRE_FALSE(rig.allocator.owns(stays));
  const BlockName of_gone = share(shared, rig, gone), of_stays = share(shared, kept, stays);
  shared.freedAllOf(rig.allocator);
  CHECK_THROWS_WITH(opened.open(other.allocator, of_gone),
                    Catch::Matchers::ContainsSubstring("has been freed"));
  CHECK(opened.open(other.allocator, of_stays).bytes == kBytes);
}

TEST_CASE("a refused import is told, and the next is served", "[sharing]") {
  SimRig rig("backing:pages"), other("backing:pages");
  SharedBlocks shared;
  OpenedBlocks opened;
  void* const block = rig.allocator.allocate(kBytes);
  const BlockName name = share(shared, rig, block);
  other.sim().faults().failNth(Call::kImportPage, 1, ErrorKind::kOther);
  CHECK_THROWS_AS(opened.open(other.allocator, name), DeviceFailure);
  CHECK(opened.open(other.allocator, name).pages != nullptr);
}

}  // namespace cistern::test
