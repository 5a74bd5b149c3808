// What low water of a stream does to the caches of the threads that share it.
#include "tests/engine/cache/thread_cache_support.hpp"

namespace cistern::test {
namespace {

enum class Fallen { kPart, kNearlyAll };

/// Whether another thread of the stream still has what it kept when this one has come to low water:
/// down to the third of the stream's memory to which it always falls, or to nearly nothing.
bool othersKeepAt(Fallen low_water) {
  constexpr std::size_t kBytes = 4 * kKiB;
  SimRig rig("backing:pages,background_thread:false,thread_cache:2M", roomySim());
  CachingAllocator& allocator = rig.allocator;
  const Stream on = rig.stream();
  void* held = allocator.allocate(64 * kMiB, on);
  IdleThread other;
  std::vector<void*> blocks;
  for (int i = 0; i < 7; ++i) blocks.push_back(other.allocate(allocator, kBytes, on));
  void* round = nullptr;
  for (std::size_t i = 0; i < 3; ++i) {  // it is known then to what the stream falls
    allocator.free(round);
    round = allocator.allocate((100 + 10 * i) * kMiB, on);
    allocator.free(allocator.allocate((40 + 10 * i) * kMiB, on));
  }
  other.free(allocator, blocks[1]);
  (void)allocator.cacheInfo();  // lies in the heap, where it fits best
  other.free(allocator, blocks[4]);
  allocator.free(round);
  if (low_water == Fallen::kNearlyAll) allocator.free(std::exchange(held, nullptr));
  void* next = other.allocate(allocator, kBytes, on);
  CHECK((next == blocks[1] || next == blocks[4]));
  const bool kept = next == blocks[4];
  blocks.erase(blocks.begin() + (kept ? 1 : 4));
  for (void* block : blocks) other.free(allocator, block);
  allocator.free(held);
  return kept;
}

}  // namespace

TEST_CASE("at low water other threads keep what they have until nearly all is free",
          "[engine][pages]") {
  CHECK(othersKeepAt(Fallen::kPart));
  CHECK_FALSE(othersKeepAt(Fallen::kNearlyAll));
}

}  // namespace cistern::test
