// Blocks that processes share by text.
#include "interop/torch/shared_blocks.hpp"

#include <unistd.h>

#include "tests/engine/engine_support.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

using cistern_torch::OpenedBlocks;
using cistern_torch::SharedBlocks;
using cistern_torch::SharedText;

constexpr std::size_t kBytes = 3 * kMiB;

/// What one process tells the other of a block.
struct Told {
  std::string text;
  std::uint64_t offset;
};

Told share(SharedBlocks& shared, SimRig& rig, void* block) {
  const auto [text, offset] = shared.share(block, rig.allocator.exportBlock(block));
  return {text, offset};
}

void fill(SimRig& rig, Address at, std::uint32_t seed) {
  rig.work.fill(Stream{}, at, kBytes, seed);
  REQUIRE(rig.work.mismatches() == 0);  // it has run
}

}  // namespace

TEST_CASE("a text says what was written", "[torch][sharing]") {
  const SharedText text{"name-1", 5, {{-1, 2 * kMiB, 8}, {-1, 20 * kMiB, 9}}};
  const SharedText read = SharedText::read(text.write());
  CHECK(read.name == text.name);
  CHECK(read.key == 5);
  REQUIRE(read.pages.size() == 2);
  CHECK(read.pages[1].bytes == 20 * kMiB);
  CHECK(read.pages[1].number == 9);
  for (const char* wrong : {"", "x", "cistern-pages", "cistern-pages n 1 0",
                            "cistern-pages n 1 2 3 4", "cistern-segments n 1 1 1 1"})
    CHECK_THROWS_WITH(SharedText::read(wrong), Catch::Contains("a handle that is not"));
}

TEST_CASE("another process reads and writes a shared block", "[torch][sharing]") {
  SimRig rig("backing:pages");
  SharedBlocks shared;
  void* const before = rig.allocator.allocate(kBytes);
  void* const block = rig.allocator.allocate(kBytes);
  fill(rig, toAddress(block), 1);
  const Told told = share(shared, rig, block);
  CHECK(statusOfChild([&] {
          SimRig child("backing:pages");
          OpenedBlocks opened;
          const auto base = opened.open(child.allocator, SharedText::read(told.text));
          const Address at = toAddress(base.get()) + told.offset;
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

TEST_CASE("a block that was freed is shared no more", "[torch][sharing]") {
  SimRig rig("backing:pages"), other("backing:pages");
  SharedBlocks shared;
  OpenedBlocks opened;
  void* const block = rig.allocator.allocate(kBytes);
  const Told told = share(shared, rig, block);
  CHECK(share(shared, rig, block).text == told.text);
  CHECK(shared.find(block).first == told.text);
  shared.freed(block);
  rig.allocator.free(block);
  CHECK(shared.find(block).first.empty());
  CHECK_THROWS_WITH(opened.open(other.allocator, SharedText::read(told.text)),
                    Catch::Contains("has been freed"));
  rig.allocator.emptyCache();
  CHECK(takenOf(rig.sim()) == 0);
}

TEST_CASE("blocks of one page are opened at one address, while somebody uses it",
          "[torch][sharing]") {
  SimRig rig("backing:pages"), other("backing:pages");
  SharedBlocks shared;
  OpenedBlocks opened;
  std::vector<std::shared_ptr<void>> users;
  for (int i = 0; i < 100; ++i) {
    void* const block = rig.allocator.allocate(2 * kKiB);
    const Told told = share(shared, rig, block);
    users.push_back(opened.open(other.allocator, SharedText::read(told.text)));
    CHECK(users.back() == users.front());
    if (i % 2 == 1) shared.freed(block);
  }
  CHECK(countOf(other.sim(), Call::kImportPage) == 1);
  users.clear();
  CHECK(countOf(other.sim(), Call::kUnmap) == 1);
  void* const block = rig.allocator.allocate(2 * kKiB);
  CHECK(opened.open(other.allocator, SharedText::read(share(shared, rig, block).text)) != nullptr);
  CHECK(countOf(other.sim(), Call::kImportPage) == 2);
}

TEST_CASE("a refused import is told, and the next is served", "[torch][sharing]") {
  SimRig rig("backing:pages"), other("backing:pages");
  SharedBlocks shared;
  OpenedBlocks opened;
  void* const block = rig.allocator.allocate(kBytes);
  const Told told = share(shared, rig, block);
  other.sim().faults().failNth(Call::kImportPage, 1, ErrorKind::kOther);
  CHECK_THROWS_AS(opened.open(other.allocator, SharedText::read(told.text)), DeviceFailure);
  CHECK(opened.open(other.allocator, SharedText::read(told.text)) != nullptr);
}

}  // namespace cistern::test
