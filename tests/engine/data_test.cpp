// Real data: what a stream wrote to its block is there until the block is freed, whoever else
// allocates and frees meanwhile.
#include <random>

#include "tests/engine/engine_support.hpp"
#include "tests/support/host_work.hpp"

namespace cistern::test {
namespace {

struct Held {
  void* block;
  std::size_t bytes;
  std::size_t stream;
  std::uint32_t seed;
};

// Allocates and fills, verifies and frees, in random order; half of the blocks are also checked on
// a second stream, which an event orders after the fill.
void churn(DeviceWork& work, CachingAllocator& allocator, std::uint32_t rounds) {
  const Streams streams(allocator, 4);
  const Event filled = work.device().createEvent().orThrow();
  std::mt19937 random(7);
  std::vector<Held> held;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    if (held.size() < 24 && random() % 3 != 0) {
      const std::size_t most = random() % 8 == 0 ? 400'000 : 20'000;  // words
      const std::size_t bytes = 4 * (1 + random() % most);
      const std::size_t on = random() % streams.size();
      void* block = allocator.allocate(bytes, streams[on]);
      work.fill(streams[on], toAddress(block), bytes, i * 1'000'003);
      held.push_back({block, bytes, on, i * 1'000'003});
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      const Held last = held.back();
      held.pop_back();
      work.verify(streams[last.stream], toAddress(last.block), last.bytes, last.seed);
      if (random() % 2 == 0) {
        const Stream other = streams[(last.stream + 1) % streams.size()];
        work.device().recordEvent(filled, streams[last.stream]).orThrow();
        work.device().waitEvent(other, filled).orThrow();
        if (random() % 8 == 0) work.delay(other, 200'000);
        work.verify(other, toAddress(last.block), last.bytes, last.seed);
        allocator.recordStream(last.block, other);
      }
      allocator.free(last.block);
    }
    if (i % 200 == 199) allocator.emptyCache();
    if (i % 50 == 0) allocator.audit();
  }
  CHECK(work.mismatches() == 0);
  for (const Held& one : held) allocator.free(one.block);
  work.device().destroyEvent(filled).orThrow();
}

}  // namespace

TEST_CASE("data stays what it is until its block is freed", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    churn(work, allocator, 400);
    allocator.audit();
  });
}

TEST_CASE("data stays what it is under pressure, where streams take each other's memory",
          "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf("limit:48M"));
    churn(work, allocator, 400);
    allocator.audit();
  });
}

TEST_CASE("a backend with only what is required serves an allocator", "[engine]") {
  for (const char* conf : {"", "limit:48M"}) {
    INFO(conf);
    HostWork work;
    REQUIRE(work.device().backend() == "host");
    CachingAllocator allocator(work.device(), optionsOf(conf));
    churn(work, allocator, 400);
    CHECK(allocator.memoryStats()[Stat::kAllocation].current == 0);
    allocator.emptyCache();
    const MemoryInfo memory = work.device().memoryInfo().orThrow();
    CHECK(memory.free_bytes == memory.total_bytes);
    allocator.audit();
  }
}

TEST_CASE("no race and no wrong data where queued work lags far behind", "[engine]") {
  for (const char* conf : {"limit:24M", "limit:40M", "limit:64M", "limit:32M,max_split_size:20M",
                           "garbage_collection_threshold:0.1"}) {
    INFO(conf);
    SimRig rig(conf, simOf(kGiB, 200'000));
    try {
      churn(rig.work, rig.allocator, 200);
    } catch (const OutOfMemory& error) {
      INFO(error.what());
      CHECK(rig.allocator.limit() == 24 * kMiB);  // only the tightest may fail, and only so
    }
  }
}

}  // namespace cistern::test
