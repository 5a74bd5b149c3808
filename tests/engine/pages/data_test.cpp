// Real data in pages that move: every block is written when it is given out and checked, word by
// word, just before it is freed, while the work before it is still queued.
#include <random>

#include "tests/engine/pages/pages_support.hpp"
#include "tests/support/skipped.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

struct Written {
  void* block;
  std::size_t bytes;
  std::size_t stream;
  std::uint32_t seed;
};

// Sizes of 1 to 24 MiB on a few streams; now and then all but a few go, so that pages go home.
void churnPages(DeviceWork& work, CachingAllocator& allocator, std::uint32_t rounds) {
  const Streams streams(allocator, 3);
  std::mt19937 random(11);
  std::vector<Written> held;
  const auto letGo = [&](std::size_t index) {
    std::swap(held[index], held.back());
    const Written last = held.back();
    held.pop_back();
    work.verify(streams[last.stream], toAddress(last.block), last.bytes, last.seed);
    allocator.free(last.block);
  };
  for (std::uint32_t i = 0; i < rounds; ++i) {
    if (held.size() < 12 && random() % 5 < 3) {
      const std::size_t bytes = kMiB + 4 * (random() % (23 * kMiB / 4));
      const std::size_t on = random() % 4 == 0 ? 1 + random() % 2 : 0;
      void* block = allocator.allocate(bytes, streams[on]);
      work.fill(streams[on], toAddress(block), bytes, i * 1'000'003);
      held.push_back({block, bytes, on, i * 1'000'003});
    } else if (!held.empty()) {
      letGo(random() % held.size());
    }
    if (i % 97 == 96) {
      while (held.size() > 2) letGo(0);
    }
    if (i % 150 == 149) allocator.emptyCache();
  }
  while (!held.empty()) letGo(0);
  CHECK(work.mismatches() == 0);
}

}  // namespace

TEST_CASE("no word is lost while pages move under queued work", "[engine][pages][gpu-too]") {
  constexpr std::uint32_t kRoundsOnSim = kSlowBuild ? 110 : 160;
  forEachBackend([](DeviceWork& work) {
    if (!work.device().virtualMemory().supported)
      return skipped("no pages on " + work.device().backend());
    std::vector<const char*> confs = {"recycle:eager", "limit:320M"};
    if (!kSlowBuild) {
      confs.insert(confs.end(), {"recycle:eager,page_size:8M",
                                 "recycle:eager,background_thread:false,limit:320M"});
    }
    for (const char* conf : confs) {
      INFO("backend: " << work.device().backend() << ", " << conf);
      CachingAllocator allocator(work.device(), Options::parse(conf));
      churnPages(work, allocator, work.device().backend() == "sim" ? kRoundsOnSim : 400);
      const PageCounts pages = allocator.memoryStats().pages;
      CHECK(pages.recycled > 0);
      CHECK(pages.revived > 0);
      allocator.audit();
    }
  });
}

}  // namespace cistern::test
