// In what order a thread gets blocks back: what it has freed itself, what other threads have freed
// of its own, and only then others of its heap.
#include <algorithm>

#include "tests/engine/cache/thread_cache_support.hpp"

namespace cistern::test {
namespace {

/// Blocks of one size that one thread holds in turn with others that keep them apart, far from low
/// low-water mark; the lowest of them lies free in the heap, where it fits best.
class OrderRig : public SimRig {
 public:
  explicit OrderRig(std::size_t bytes)
      : SimRig("background_thread:false,thread_cache:8M", roomySim()) {
    anchors_.push_back(get(64 * kMiB));
    prepare();
    const std::uint64_t misses = allocator.misses();
    for (int i = 0; i < 8; ++i) {
      blocks.push_back(get(bytes));
      anchors_.push_back(get(bytes));
    }
    REQUIRE(allocator.misses() == misses);
    std::sort(blocks.begin(), blocks.end());
    owner.free(allocator, blocks.front());
    (void)allocator.cacheInfo();  // and puts it back into the heap
  }
  ~OrderRig() {
    for (void* block : anchors_) owner.free(allocator, block);
  }
  void* get(std::size_t bytes) { return owner.allocate(allocator, bytes, own); }
  /// The same, to be freed at the end.
  void* keep(std::size_t bytes) {
    anchors_.push_back(get(bytes));
    return anchors_.back();
  }
  /// What is held still is freed at the end.
  void keepRest(std::size_t from) {
    anchors_.insert(anchors_.end(), blocks.begin() + std::ptrdiff_t(from), blocks.end());
  }

  const Stream own = stream();
  IdleThread owner, other;
  std::vector<void*> blocks;

 private:
  // What a miss serves is the heap's: no cache gets it back. And peaks are far away after it, so
  // that no hit publishes.
  void prepare() {
    std::vector<void*> memory;
    for (int i = 0; i < 8; ++i) memory.push_back(get(kMiB));
    for (int i = 0; i < 64; ++i) memory.push_back(get(512));
    for (const std::size_t from : {1u, 0u}) {  // many pieces lie free between others, for a while
      for (std::size_t i = from; i < memory.size(); i += 2) owner.free(allocator, memory[i]);
      (void)allocator.memoryStats();
    }
  }
  std::vector<void*> anchors_;
};

constexpr std::size_t kOrderSizes[] = {1'024, 64 * kKiB, 200 * kKiB};

}  // namespace

TEST_CASE("what another thread has freed comes back before the heap gives a block", "[engine]") {
  for (const std::size_t bytes : kOrderSizes) {
    INFO(bytes);
    OrderRig rig(bytes);
    rig.other.free(rig.allocator, rig.blocks[5]);
    CHECK(rig.keep(bytes) == rig.blocks[5]);
    CHECK(rig.keep(bytes) == rig.blocks[0]);  // and then the heap's
    rig.blocks.erase(rig.blocks.begin() + 5);
    rig.keepRest(1);
  }
}

TEST_CASE("what a thread has freed itself comes before what another has freed", "[engine]") {
  for (const std::size_t bytes : kOrderSizes) {
    for (const bool own_first : {true, false}) {
      INFO(bytes << (own_first ? ", its own freed first" : ", its own freed last"));
      OrderRig rig(bytes);
      if (own_first) rig.owner.free(rig.allocator, rig.blocks[6]);
      rig.other.free(rig.allocator, rig.blocks[7]);
      if (!own_first) rig.owner.free(rig.allocator, rig.blocks[6]);
      CHECK(rig.keep(bytes) == rig.blocks[6]);
      CHECK(rig.keep(bytes) == rig.blocks[7]);
      CHECK(rig.keep(bytes) == rig.blocks[0]);
      rig.blocks.resize(6);
      rig.keepRest(1);
    }
  }
}

// More is asked for in the block than when it was freed: its room does not cover it, and the thread
// takes it under the heap's lock.
TEST_CASE("what a thread has freed itself comes first though the block has no room for the request",
          "[engine]") {
  for (const std::size_t bytes : kOrderSizes) {
    INFO(bytes);
    OrderRig rig(bytes - 500);
    rig.owner.free(rig.allocator, rig.blocks[6]);
    rig.other.free(rig.allocator, rig.blocks[7]);
    CHECK(rig.keep(bytes) == rig.blocks[6]);
    CHECK(rig.keep(bytes) == rig.blocks[7]);
    CHECK(rig.keep(bytes) == rig.blocks[0]);
    rig.blocks.resize(6);
    rig.keepRest(1);
  }
}

}  // namespace cistern::test
