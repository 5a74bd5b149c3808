// Peaks of small and of large memory where pages go from the one to the other: at low water what
// small blocks had goes home, and the large memory is as much as before.
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

/// Small blocks out of pages that a large one has left.
class Borrowed {
 public:
  explicit Borrowed(SimRig& rig) : allocator_(rig.allocator), on_(rig.stream()) {
    allocator_.free(allocator_.allocate(64 * kMiB, on_));
    home_ = largeReserved().current;
    take();
  }
  ~Borrowed() { giveBack(); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  void take() {
    for (int i = 0; i < 40; ++i) blocks_.push_back(allocator_.allocate(kMiB, on_));
    REQUIRE(largeReserved().current < home_);
  }
  void giveBack() {
    for (void* block : blocks_) allocator_.free(block);
    blocks_.clear();
  }
  /// Of large memory when all is at home.
  std::int64_t home() const { return home_; }
  StatValue largeReserved() const {
    return allocator_.memoryStats().large_pool[std::size_t(Stat::kReservedBytes)];
  }

 private:
  CachingAllocator& allocator_;
  const Stream on_;
  std::int64_t home_ = 0;
  std::vector<void*> blocks_;
};

}  // namespace

TEST_CASE("the peak of large reserved bytes sees what a low water sends home", "[engine][pages]") {
  SimRig rig("backing:pages,recycle:eager,thread_cache:off");
  Borrowed borrowed(rig);
  rig.allocator.resetPeakStats();
  borrowed.giveBack();
  borrowed.take();  // nobody has looked in between
  CHECK(rig.allocator.memoryStats().peaks_exact);
  CHECK(borrowed.largeReserved().peak == borrowed.home());
  rig.allocator.audit();
}

}  // namespace cistern::test
