// What is promised while peaks are loose (statistics.hpp): counts, and the peaks of what no hit
// changes, as exact as ever; the other peaks never too high, and never below a moment that somebody
// has looked at.
#include <algorithm>
#include <random>

#include "tests/engine/loose_peaks_support.hpp"

namespace cistern::test {
namespace {

/// Two threads that take turns near their common peak, each on a stream of its own, and what the
/// test itself knows of their bytes. Pre: the program holds nothing.
class TwoThreads {
 public:
  explicit TwoThreads(LooseRig& rig) : rig_(rig), peak_(rig.peakBytes()) {
    rig.allocator.resetAccumulatedStats();
  }
  ~TwoThreads() {
    for (const Held& held : held_) rig_.allocator.free(held.block);
  }
  TwoThreads(const TwoThreads&) = delete;
  TwoThreads& operator=(const TwoThreads&) = delete;

  void step() {
    if (held_.empty() || random_() % 100 < (held_.size() < 30 ? 55 : 45)) return take();
    std::swap(held_[random_() % held_.size()], held_.back());
    const auto [block, bytes] = held_.back();
    held_.pop_back();
    // Some are freed by the thread that does not own them.
    random_() % 2 == 0 ? rig_.allocator.free(block) : rig_.other.free(rig_.allocator, block);
    current_ -= bytes;
  }
  void look() {
    const MemoryStats stats = rig_.allocator.memoryStats();
    REQUIRE_FALSE(stats.peaks_exact);
    const StatValue& found = stats[Stat::kAllocatedBytes];
    looked_peak_ = std::max(looked_peak_, current_);
    REQUIRE(found.current == current_);
    REQUIRE(found.allocated == allocated_);
    REQUIRE(found.freed == allocated_ - current_);
    REQUIRE(found.peak >= looked_peak_);
    REQUIRE(found.peak <= peak_);
    REQUIRE(stats[Stat::kAllocation].current == std::int64_t(held_.size()));
  }

 private:
  struct Held {
    void* block;
    std::int64_t bytes;
  };
  void take() {
    const std::size_t bytes = random_() % 8 == 0 ? 2 * kMiB : 512 * (1 + random_() % 200);
    void* block = random_() % 2 == 0 ? rig_.allocator.allocate(bytes, rig_.own)
                                     : rig_.other.allocate(rig_.allocator, bytes, rig_.others);
    held_.push_back({block, std::int64_t(bytes)});
    current_ += std::int64_t(bytes);
    allocated_ += std::int64_t(bytes);
    peak_ = std::max(peak_, current_);
  }
  LooseRig& rig_;
  std::mt19937 random_{1};
  std::vector<Held> held_;
  std::int64_t current_ = 0, allocated_ = 0, looked_peak_ = 0;
  std::int64_t peak_;  ///< of every moment
};

/// What the device has given out and not got back, in pieces.
std::int64_t piecesOf(Device& device) {
  return std::int64_t(countOf(device, Call::kMalloc) + countOf(device, Call::kCreatePage)) -
         std::int64_t(countOf(device, Call::kFree) + countOf(device, Call::kReleasePage));
}

}  // namespace

TEST_CASE("while peaks are loose counts stay exact, and no peak is too high", "[engine]") {
  LooseRig rig;
  rig.becomeLoose();
  TwoThreads program(rig);
  for (int i = 1; i <= 3'000; ++i) {
    program.step();
    if (i % 50 == 0) program.look();
  }
}

TEST_CASE("while peaks are loose hits hold nobody still, and reads and misses look", "[engine]") {
  LooseRig rig;
  rig.becomeLoose();
  CachingAllocator& allocator = rig.allocator;
  const std::int64_t before = rig.peakBytes();
  REQUIRE(before < mib(1));
  const std::uint64_t misses = allocator.misses();
  allocator.free(allocator.allocate(2 * kMiB, rig.own));  // nobody looks
  REQUIRE(allocator.misses() == misses);
  CHECK(rig.peakBytes() == before);
  void* block = allocator.allocate(4 * kMiB, rig.own);
  CHECK(rig.peakBytes() == mib(4));
  allocator.free(block);
  block = allocator.allocate(6 * kMiB, rig.own);
  void* missed = allocator.allocate(kMiB, rig.stream());  // a heap that is higher than ever
  allocator.free(missed);
  allocator.free(block);
  CHECK(rig.peakBytes() == mib(7));
}

TEST_CASE("while peaks are loose a miss looks before it begins", "[engine]") {
  LooseRig rig;
  rig.becomeLoose();
  CachingAllocator& allocator = rig.allocator;
  // Later a stream misses that was as high before, with less reserved than ever: it does not look
  // afterwards.
  std::vector<void*> blocks;
  for (int i = 0; i < 60; ++i) blocks.push_back(allocator.allocate(20 * kMiB, rig.high));
  for (void* block : blocks) allocator.free(block);
  blocks.clear();
  for (int i = 0; i < 50; ++i) blocks.push_back(allocator.allocate(512, rig.others));
  for (void* block : blocks) allocator.free(block);
  const std::int64_t peak = rig.of(Stat::kAllocation).peak;
  allocator.emptyCache();
  allocator.free(allocator.allocate(kMiB, rig.own));
  blocks.clear();
  const std::uint64_t misses = allocator.misses();
  while (std::int64_t(blocks.size()) < peak + 5) blocks.push_back(allocator.allocate(512, rig.own));
  REQUIRE(allocator.misses() == misses);
  void* missed = allocator.allocate(512, rig.others);
  REQUIRE(allocator.misses() == misses + 1);
  for (void* block : blocks) allocator.free(block);
  allocator.free(missed);  // not before: at low tide somebody looks
  CHECK(rig.of(Stat::kAllocation).peak >= peak + 5);
}

// With pages, somebody looks at each low tide.
TEST_CASE("while peaks are loose those of segments and reserved bytes are exact", "[engine]") {
  for (const char* backing : {"backing:pages", "backing:segments"}) {
    INFO(backing);
    LooseRig rig(std::string("thread_cache:2M,") + backing);
    rig.becomeLoose();
    rig.other.end();  // or each miss would look
    CachingAllocator& allocator = rig.allocator;
    std::vector<void*> blocks;
    const auto take = [&](Stream stream, int count) {
      for (int i = 0; i < count; ++i) blocks.push_back(allocator.allocate(20 * kMiB, stream));
    };
    const auto letGo = [&] {
      for (void* block : blocks) allocator.free(block);
      blocks.clear();
      allocator.emptyCache();
    };
    letGo();
    for (const Stream stream : {rig.own, rig.others}) take(stream, 25), letGo();  // each was higher
    take(rig.own, 20);
    take(rig.others, 20);
    const std::uint64_t taken = takenOf(rig.sim());
    const std::int64_t pieces = piecesOf(rig.sim());
    letGo();
    const MemoryStats stats = allocator.memoryStats();
    CHECK_FALSE(stats.peaks_exact);
    CHECK(stats[Stat::kReservedBytes].peak == std::int64_t(taken));
    CHECK(stats[Stat::kSegment].peak == pieces);
  }
}

}  // namespace cistern::test
