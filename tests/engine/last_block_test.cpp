// The one larger block that a thread keeps: for as long as that is of use.
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kKept = 512 * kKiB, kOther = 768 * kKiB;

/// A block with a neighbour in use behind it, so that it is the best place for a little less as
/// soon as the heap has it.
struct LastBlock {
  LastBlock() {
    rig.allocator.free(rig.allocator.allocate(8 * kMiB, stream));
    rig.allocator.free(first);  // what comes by a miss is nobody's in particular
    first = rig.allocator.allocate(kKept, stream);
  }
  ~LastBlock() {
    for (void* block : {first, between, anchor}) rig.allocator.free(block);
  }
  /// Whether the thread keeps the block when it is freed: a small one goes elsewhere then.
  bool keeps() {
    rig.allocator.free(first);
    void* small = rig.allocator.allocate(60 * kKiB, stream);
    const bool kept = small != first;
    rig.allocator.free(small);
    (void)rig.allocator.cacheInfo();  // all goes back to the heap
    first = rig.allocator.allocate(kKept, stream);
    return kept;
  }
  /// Frees it and asks for another size instead.
  void waste(int times) {
    for (int i = 0; i < times; ++i) {
      rig.allocator.free(first);
      void* other = rig.allocator.allocate(kOther, stream);
      rig.allocator.free(other);
      first = rig.allocator.allocate(kKept, stream);
    }
  }

  SimRig rig{"background_thread:false"};
  Stream stream = rig.stream();
  void* first = rig.allocator.allocate(kKept, stream);
  void* between = rig.allocator.allocate(4 * kKiB, stream);
  void* anchor = rig.allocator.allocate(64 * kMiB, stream);  // far from low tide
};

}  // namespace

TEST_CASE("the larger block that was freed last is kept while it is asked for again", "[engine]") {
  LastBlock t;
  CHECK(t.keeps());
  for (int i = 0; i < 100; ++i) {
    t.rig.allocator.free(t.first);
    t.first = t.rig.allocator.allocate(kKept, t.stream);
  }
  CHECK(t.keeps());
}

TEST_CASE("one that is not asked for again is not kept each time", "[engine]") {
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
