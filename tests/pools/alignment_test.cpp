// Blocks at a multiple of an alignment, in pools, captures, and overflow.
#include <memory>
#include <random>
#include <vector>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

bool isAligned(const void* block, std::size_t alignment) {
  return (toAddress(block) & (alignment - 1)) == 0;
}

/// Segments of the device's that begin 512 bytes further in.
class OddSource final : public SegmentSource {
 public:
  explicit OddSource(Device& device) : device_(device) {}
  Result<Address> allocate(std::size_t bytes, Stream) override {
    ++asked;
    const Result<Address> base = device_.malloc(bytes + 512);
    return base ? Result<Address>(base.value() + 512) : base;
  }
  Status free(Address address, std::size_t) override {
    ++took_back;
    return device_.free(address - 512);
  }
  int asked = 0, took_back = 0;

 private:
  Device& device_;
};

}  // namespace

TEST_CASE("a source is asked for room for the alignment at once", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  const auto source = std::make_shared<OddSource>(rig.sim());
  MemPool pool(rig.pools, {source});
  void* const block = pool.allocate(5 * kMiB, s, kMostAlignment);
  CHECK(isAligned(block, kMostAlignment));
  CHECK((source->asked == 1 && source->took_back == 0));
  rig.free(block);
  CHECK(pool.allocate(5 * kMiB, s, kMostAlignment) == block);
  CHECK(source->asked == 1);
  rig.free(block);
}

TEST_CASE("a scope's pool and a capture's pool serve a request with an alignment", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  {
    const MemPoolScope scope(pool);
    void* const block = rig.allocator.allocate(5 * kMiB, s, 64 * kKiB);
    CHECK(isAligned(block, 64 * kKiB));
    CHECK(rig.holds(pool.id(), {block}));
    rig.free(block);
  }
  Graph graph(rig.pools);
  graph.captureBegin(s, pool.id());
  std::vector<void*> blocks;
  for (std::size_t alignment = 512; alignment <= kMostAlignment; alignment *= 4) {
    blocks.push_back(rig.allocator.allocate(3 * kMiB + 512, s, alignment));
    CHECK(isAligned(blocks.back(), alignment));
    rig.touch(s, blocks.back());
    if (blocks.size() % 2 == 0) rig.free(blocks.back());
  }
  graph.captureEnd();
  graph.replay(s);
  for (std::size_t i = 0; i < blocks.size(); i += 2) rig.free(blocks[i]);
  rig.finish();
}

TEST_CASE("a captured stream has back what another freed only where that is aligned", "[pools]") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    PoolRig rig;
    std::mt19937 random(seed);
    const Stream s = rig.stream(), side = rig.stream();
    Graph graph(rig.pools);
    graph.captureBegin(s);
    const Event forked = rig.sim().createEvent().orThrow();
    rig.sim().recordEvent(forked, s).orThrow();
    rig.sim().waitEvent(side, forked).orThrow();
    std::vector<void*> blocks;
    for (int i = 0; i < 60; ++i) {
      const std::size_t alignment = std::size_t{512} << (random() % 13);
      const Stream on = random() % 2 ? s : side;
      void* const block = rig.allocator.allocate(kMiB + 512 * (random() % 4096), on, alignment);
      CHECK(isAligned(block, alignment));
      rig.touch(on, block);
      blocks.push_back(block);
      if (random() % 2) continue;
      std::swap(blocks[random() % blocks.size()], blocks.back());
      rig.free(blocks.back());
      blocks.pop_back();
    }
    const Event joined = rig.sim().createEvent().orThrow();
    rig.sim().recordEvent(joined, side).orThrow();
    rig.sim().waitEvent(s, joined).orThrow();
    graph.captureEnd();
    graph.replay(s);
    rig.finish();
    for (void* block : blocks) rig.free(block);
    rig.sim().destroyEvent(forked).orThrow();
    rig.sim().destroyEvent(joined).orThrow();
  }
}

}  // namespace cistern::test
