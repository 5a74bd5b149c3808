// Blocks that another process uses: exported by one allocator, opened by another one on a device
// object of its own.
#include <set>

#include <unistd.h>

#include "tests/engine/sharing/sharing_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

std::vector<int> numbersOf(const BlockExport& exported) {
  std::vector<int> numbers;
  for (const SharedPage& page : exported.pages) numbers.push_back(int(page.number));
  return numbers;
}

/// Two processes with the same GPU: what one exports, the other opens.
struct TwoProcesses {
  explicit TwoProcesses(const sim::SimConfig& config = simOf(kGiB))
      : from("backing:pages", config), to("backing:pages", config) {}

  SimRig from, to;

  std::shared_ptr<void> open(const BlockExport& exported) {
    return to.allocator.openImport(exported.pages);
  }
  void fillHere(void* block, std::size_t bytes, std::uint32_t seed) {
    from.work.fill(Stream{}, toAddress(block), bytes, seed);
    CHECK(from.work.mismatches() == 0);  // it has run
  }
  void checkHere(void* block, std::size_t bytes, std::uint32_t seed) {
    from.work.verify(Stream{}, toAddress(block), bytes, seed);
    CHECK(from.work.mismatches() == 0);
  }
  void checkThere(const BlockExport& exported, const std::shared_ptr<void>& base,
                  std::uint32_t seed) {
    to.work.verify(Stream{}, toAddress(base.get()) + exported.offset, exported.bytes, seed);
    CHECK(to.work.mismatches() == 0);
  }
  void fillThere(const BlockExport& exported, const std::shared_ptr<void>& base,
                 std::uint32_t seed) {
    to.work.fill(Stream{}, toAddress(base.get()) + exported.offset, exported.bytes, seed);
    CHECK(to.work.mismatches() == 0);
  }
  // Nothing is left of either, on the device or among descriptors.
  void checkNothingLeft(std::size_t descriptors) {
    from.allocator.emptyCache();
    CHECK(reservedOf(from.allocator) == 0);
    CHECK(takenOf(from.sim()) == 0);
    CHECK(takenOf(to.sim()) == 0);
    CHECK(openDescriptors() == descriptors);
  }
};

}  // namespace

TEST_CASE("a block of several pages has no handle of its own, and the error says what has",
          "[engine][pages][sharing]") {
  SimRig rig("backing:pages,page_size:2M");
  void* const small = rig.allocator.allocate(kMiB);
  void* const large = rig.allocator.allocate(6 * kMiB);
  {
    const auto one = rig.allocator.exportBlock(small), several = rig.allocator.exportBlock(large);
    CHECK(&one->onlyPage() == &one->pages.front());
    CHECK_THROWS_WITH(several->onlyPage(),
                      Catch::Matchers::ContainsSubstring("lies in 3 pages") &&
                          Catch::Matchers::ContainsSubstring("MemPoolOptions::one_handle"));
  }
  rig.allocator.free(small);
  rig.allocator.free(large);
}

TEST_CASE("an exported block is one memory on both sides", "[engine][pages][sharing]") {
  TwoProcesses two;
  const std::size_t descriptors = openDescriptors();
  constexpr std::size_t kBytes = 5 * kMiB;
  void* const before = two.from.allocator.allocate(kBytes);
  void* const block = two.from.allocator.allocate(kBytes);
  two.fillHere(block, kBytes, 1);
  {
    const auto exported = two.from.allocator.exportBlock(block);
    CHECK(exported->bytes == two.from.allocator.blockSize(block));
    CHECK(toAddress(exported->base) + exported->offset == toAddress(block));
    const auto base = two.open(*exported);
    two.checkThere(*exported, base, 1);
    two.fillThere(*exported, base, 2);
    two.checkHere(block, kBytes, 2);
    CHECK_FALSE(two.to.allocator.owns(base.get()));
  }
  two.from.allocator.free(before);
  two.from.allocator.free(block);
  two.checkNothingLeft(descriptors);
}

TEST_CASE("a block and its import end in either order", "[engine][pages][sharing]") {
  TwoProcesses two;
  const std::size_t descriptors = openDescriptors();
  const bool block_first = GENERATE(false, true);
  const bool export_first = GENERATE(false, true);
  void* block = two.from.allocator.allocate(30 * kMiB);
  two.fillHere(block, 30 * kMiB, 1);
  auto exported = two.from.allocator.exportBlock(block);
  const BlockExport what = *exported;
  auto base = two.open(what);
  if (export_first) exported = nullptr;
  if (block_first) {
    two.from.allocator.free(block);
    exported = nullptr;
    two.from.allocator.emptyCache();
    two.checkThere(what, base, 1);
  }
  base = nullptr;
  if (!block_first) {
    two.checkHere(block, 30 * kMiB, 1);
    two.from.allocator.free(block);
    exported = nullptr;
  }
  two.checkNothingLeft(descriptors);
}

TEST_CASE("exported memory is not given back before the export is dropped", "[engine][sharing]") {
  SimRig rig;
  void* block = rig.allocator.allocate(20 * kMiB);
  auto exported = rig.allocator.exportBlock(block);
  auto again = rig.allocator.exportBlock(block);
  CHECK(numbersOf(*exported) == numbersOf(*again));
  rig.allocator.free(block);
  for (auto* drop : {&exported, &again}) {
    rig.allocator.emptyCache();
    CHECK(reservedOf(rig.allocator) >= mib(20));
    CHECK(std::uint64_t(reservedOf(rig.allocator)) == takenOf(rig.sim()));
    rig.allocator.audit();
    *drop = nullptr;
  }
  rig.allocator.emptyCache();
  CHECK(takenOf(rig.sim()) == 0);
}

TEST_CASE("blocks of one page share its descriptor", "[engine][pages][sharing]") {
  TwoProcesses two;
  const std::size_t descriptors = openDescriptors();
  std::vector<void*> blocks;
  std::vector<std::shared_ptr<const BlockExport>> exports;
  std::set<std::uint64_t> numbers;
  for (std::uint32_t i = 0; i < 100; ++i) {
    blocks.push_back(two.from.allocator.allocate(4 * kKiB));
    two.fillHere(blocks.back(), 4 * kKiB, i);
    exports.push_back(two.from.allocator.exportBlock(blocks.back()));
    for (const SharedPage& page : exports.back()->pages) numbers.insert(page.number);
  }
  CHECK(numbers.size() <= 2);
  CHECK(openDescriptors() == descriptors + 2 * numbers.size());  // a simulated page has its own
}

TEST_CASE("what moves around an exported block leaves it alone", "[engine][pages][sharing]") {
  TwoProcesses two;
  void* const block = two.from.allocator.allocate(6 * kMiB);
  const auto exported = two.from.allocator.exportBlock(block);
  const auto base = two.open(*exported);
  two.fillHere(block, 6 * kMiB, 1);
  Streams streams(two.from.allocator, 2);
  for (std::size_t step = 0; step < 40; ++step) {
    const std::size_t bytes = (8 + 4 * (step % 7)) * kMiB;
    void* const other = two.from.allocator.allocate(bytes, streams[step % 2]);
    void* const fence = two.from.allocator.allocate(2 * kMiB, streams[step % 2]);
    two.from.touch(streams[step % 2], other);
    two.from.allocator.free(other);
    two.from.allocator.free(fence);
  }
  two.from.sim().synchronizeDevice().orThrow();
  CHECK(two.from.allocator.memoryStats().pages.recycled > 0);
  two.checkThere(*exported, base, 1);
  two.checkHere(block, 6 * kMiB, 1);
  two.from.allocator.free(block);
}

TEST_CASE("where there is a fabric a block is opened by its pages' names alone",
          "[engine][pages][sharing]") {
  sim::SimConfig config = simOf(kGiB);
  config.fabric = true;
  TwoProcesses two(config);
  const std::size_t descriptors = openDescriptors();
  constexpr std::size_t kBytes = 30 * kMiB;
  const bool block_first = GENERATE(false, true);
  void* const block = two.from.allocator.allocate(kBytes);
  two.fillHere(block, kBytes, 1);
  auto exported = two.from.allocator.exportBlock(block);
  BlockExport sent = *exported;
  for (SharedPage& page : sent.pages) {
    REQUIRE(page.fabric);
    page.descriptor = -1;
  }
  auto base = two.open(sent);
  two.checkThere(sent, base, 1);
  two.fillThere(sent, base, 2);
  two.checkHere(block, kBytes, 2);
  if (block_first) {
    two.from.allocator.free(block);
    exported = nullptr;
    two.from.allocator.emptyCache();
    two.checkThere(sent, base, 2);
    base = nullptr;
    CHECK_THROWS_AS(two.open(sent), DeviceFailure);
  } else {
    base = nullptr;
    two.from.allocator.free(block);
    exported = nullptr;
  }
  two.checkNothingLeft(descriptors);
}

TEST_CASE("without a fabric a page has no name", "[engine][pages][sharing]") {
  SimRig rig("backing:pages");
  void* const block = rig.allocator.allocate(kMiB);
  const auto exported = rig.allocator.exportBlock(block);
  for (const SharedPage& page : exported->pages) CHECK_FALSE(page.fabric);
  rig.allocator.free(block);
}

TEST_CASE("only an allocated block is exported", "[engine][sharing]") {
  SimRig rig;
  auto* const block = static_cast<std::byte*>(rig.allocator.allocate(kMiB));
  int host = 0;
  CHECK_THROWS_AS(rig.allocator.exportBlock(block + 512), InvalidArgument);
  CHECK_THROWS_AS(rig.allocator.exportBlock(&host), InvalidArgument);
  CHECK_THROWS_AS(rig.allocator.exportBlock(nullptr), InvalidArgument);
  rig.allocator.free(block);
  CHECK_THROWS_AS(rig.allocator.exportBlock(block), InvalidArgument);
}

TEST_CASE("a block in one device malloc has no page in its export", "[engine][sharing]") {
  SimRig rig("backing:segments");
  void* const first = rig.allocator.allocate(kMiB);
  void* const block = rig.allocator.allocate(kMiB / 2);
  const auto exported = rig.allocator.exportBlock(block);
  CHECK(exported->pages.empty());
  CHECK(exported->base == rig.allocator.getBaseAllocation(block).base);
  CHECK(toAddress(exported->base) + exported->offset == toAddress(block));
  rig.allocator.free(first);
  rig.allocator.free(block);
}

TEST_CASE("a refused export holds nothing", "[engine][pages][sharing]") {
  sim::SimConfig config = simOf(kGiB);
  config.fabric = GENERATE(false, true);
  SimRig rig("backing:pages", config);
  void* const block = rig.allocator.allocate(60 * kMiB);
  const std::size_t descriptors = openDescriptors();
  const std::size_t pages = rig.allocator.exportBlock(block)->pages.size();
  REQUIRE(pages > 1);
  const std::size_t files = openDescriptors();
  for (std::size_t nth = 1; nth <= pages * (config.fabric ? 2 : 1); ++nth) {
    rig.sim().faults().failNth(Call::kExportPage, nth, ErrorKind::kOther);
    CHECK_THROWS_AS(rig.allocator.exportBlock(block), DeviceFailure);
    CHECK(openDescriptors() == files);
  }
  CHECK(files == descriptors + pages);  // a simulated page has its own
  rig.allocator.free(block);
  rig.allocator.emptyCache();
  CHECK(takenOf(rig.sim()) == 0);
}

TEST_CASE("a refused import leaves nothing behind", "[engine][pages][sharing]") {
  TwoProcesses two;
  void* const block = two.from.allocator.allocate(60 * kMiB);
  two.fillHere(block, 60 * kMiB, 1);
  const auto exported = two.from.allocator.exportBlock(block);
  const std::size_t files = openDescriptors();
  for (const Call call : {Call::kReserve, Call::kImportPage, Call::kMap, Call::kSetAccess}) {
    const std::size_t most = call == Call::kImportPage || call == Call::kMap ? 2 : 1;
    for (std::size_t nth = 1; nth <= most; ++nth) {
      two.to.sim().faults().failNth(call, nth, ErrorKind::kOther);
      CHECK_THROWS_AS(two.open(*exported), DeviceFailure);
      CHECK(openDescriptors() == files);
    }
  }
  two.to.sim().audit();
  const auto base = two.open(*exported);
  two.checkThere(*exported, base, 1);
  two.from.allocator.free(block);
}

TEST_CASE("an import of no page, or of a wrong size, is refused", "[engine][sharing]") {
  SimRig rig;
  CHECK_THROWS_AS(rig.allocator.openImport({}), InvalidArgument);
  CHECK_THROWS_AS(rig.allocator.openImport({{0, 0, 1}}), InvalidArgument);
  CHECK_THROWS_AS(rig.allocator.openImport({{0, kMiB, 1}}), InvalidArgument);
  CHECK_THROWS_AS(rig.allocator.openImport({{-1, 2 * kMiB, 1}}), DeviceFailure);
  const std::uint64_t half = 1ULL << 63;
  CHECK_THROWS_AS(rig.allocator.openImport({{0, half, 1}, {0, half, 2}, {0, 2 * kMiB, 3}}),
                  InvalidArgument);
}

TEST_CASE("an import waits for the work that uses it", "[engine][pages][sharing]") {
  TwoProcesses two;
  void* const block = two.from.allocator.allocate(2 * kMiB);
  const auto exported = two.from.allocator.exportBlock(block);
  {
    const auto base = two.open(*exported);
    two.to.work.delay(Stream{}, kLongNs);
    two.to.work.fill(Stream{}, toAddress(base.get()) + exported->offset, 2 * kMiB, 1);
  }
  two.checkHere(block, 2 * kMiB, 1);  // the rig finds an unmapping in use too
  two.from.allocator.free(block);
}

TEST_CASE("threads export blocks of the same pages", "[engine][pages][sharing][threads]") {
  SimRig rig("backing:pages");
  const std::size_t descriptors = openDescriptors();
  onThreads(4, [&] {
    for (std::size_t i = 0; i < 50; ++i) {
      void* const block = rig.allocator.allocate(4 * kKiB << (i % 4));
      const auto exported = rig.allocator.exportBlock(block);
      if (i % 2 == 0) rig.allocator.free(block);
      const auto again = i % 2 == 1 ? rig.allocator.exportBlock(block) : nullptr;
      if (i % 2 == 1) rig.allocator.free(block);
    }
  });
  rig.allocator.emptyCache();
  CHECK(takenOf(rig.sim()) == 0);
  CHECK(openDescriptors() == descriptors);
}

TEST_CASE("a peer reaches every block, also those that come later", "[engine][sharing]") {
  sim::SimConfig config = simOf(kGiB);
  config.peers = {1};
  SimRig rig("", config);
  void* const early = rig.allocator.allocate(20 * kMiB);
  CHECK_FALSE(rig.sim().peerReaches(1, toAddress(early), 20 * kMiB));
  rig.allocator.enablePeerAccess(1);
  rig.allocator.enablePeerAccess(1);
  rig.allocator.enablePeerAccess(0);
  void* const late = rig.allocator.allocate(50 * kMiB);
  void* const small = rig.allocator.allocate(kKiB);
  rig.allocator.free(early);
  void* const moved = rig.allocator.allocate(35 * kMiB);
  for (void* block : {late, small, moved})
    CHECK(rig.sim().peerReaches(1, toAddress(block), rig.allocator.blockSize(block)));
  CHECK_THROWS_AS(rig.allocator.enablePeerAccess(2), DeviceFailure);
  CHECK_THROWS_AS(rig.allocator.enablePeerAccess(-1), DeviceFailure);
  for (void* block : {late, small, moved}) rig.allocator.free(block);
}

TEST_CASE("a peer reaches what was opened of another process", "[engine][pages][sharing]") {
  sim::SimConfig config = simOf(kGiB);
  config.peers = {1};
  SimRig from("backing:pages"), to("backing:pages", config);
  void* const block = from.allocator.allocate(4 * kMiB);
  const auto exported = from.allocator.exportBlock(block);
  to.allocator.enablePeerAccess(1);
  const auto base = to.allocator.openImport(exported->pages);
  CHECK(to.sim().peerReaches(1, toAddress(base.get()) + exported->offset, exported->bytes));
  from.allocator.free(block);
}

}  // namespace cistern::test
