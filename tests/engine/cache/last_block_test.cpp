// The one block larger than 1 MiB that a thread keeps, and what it keeps in stacks that sizes
// share: for as long as that is of use.
#include <utility>

#include "tests/engine/cache/thread_cache_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kKept = 2 * kMiB, kOther = 3 * kMiB;

struct LastBlock {
  LastBlock() {
    rig.allocator.free(rig.allocator.allocate(16 * kMiB, stream));
    (void)keeps();  // what is a new high takes it back
  }
  ~LastBlock() { rig.allocator.free(anchor); }
  void* get(std::size_t bytes) { return rig.allocator.allocate(bytes, stream); }
  /// Whether the thread keeps a block when it is freed: or else the next is where it fits best, at
  /// the lower address.
  bool keeps() {
    void* blocks[] = {get(kKept), get(kOther), get(kKept)};
    if (blocks[0] > blocks[2]) std::swap(blocks[0], blocks[2]);
    for (void* block : {blocks[0], blocks[2]}) rig.allocator.free(block);
    void* const again = get(kKept);
    const bool kept = again == blocks[2];
    for (void* block : {again, blocks[1]}) rig.allocator.free(block);
    return kept;
  }
  /// Frees one and asks for another size instead.
  void waste(int times) {
    for (int i = 0; i < times; ++i) {
      for (const std::size_t bytes : {kKept, kOther}) rig.allocator.free(get(bytes));
    }
  }

  SimRig rig{"background_thread:false", roomySim()};
  Stream stream = rig.stream();
  void* anchor = rig.allocator.allocate(64 * kMiB, stream);  // far from low water
};

}  // namespace

TEST_CASE("the larger block that was freed last is kept while it is asked for again", "[engine]") {
  LastBlock t;
  CHECK(t.keeps());
  for (int i = 0; i < 100; ++i) t.rig.allocator.free(t.get(kKept));
  CHECK(t.keeps());
}

TEST_CASE("of sizes that never come again little is kept, and of one that does all",
          "[engine][pages]") {
  constexpr std::size_t kSize = 200 * kKiB;
  const auto keepsAfter = [&](std::size_t wasted) {
    LastBlock t;
    for (std::size_t i = 0; i < wasted; ++i)
      t.rig.allocator.free(t.get((100 + i * 7 % 900) * kKiB));
    void* blocks[] = {t.get(kSize), t.get(kKiB), t.get(kSize)};
    if (blocks[0] > blocks[2]) std::swap(blocks[0], blocks[2]);
    for (void* block : {blocks[0], blocks[2]}) t.rig.allocator.free(block);
    void* const again = t.get(kSize);
    for (void* block : {again, blocks[1]}) t.rig.allocator.free(block);
    return again == blocks[2];
  };
  CHECK(keepsAfter(0));
  int kept = 0;
  for (std::size_t wasted = 200; wasted < 232; ++wasted) kept += keepsAfter(wasted) ? 1 : 0;
  CHECK(kept <= 24);
}

TEST_CASE("a larger block that is not asked for again is not kept each time", "[engine]") {
  int kept = 0;
  for (int wasted = 200; wasted < 232; ++wasted) {
    LastBlock t;
    t.waste(wasted);
    kept += t.keeps() ? 1 : 0;
  }
  CHECK(kept >= 1);
  CHECK(kept <= 24);
}

}  // namespace cistern::test
