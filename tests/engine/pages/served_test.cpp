// Whatever the free pages are enough for is served, wherever they lie, and without a wait.
#include "tests/engine/pages/pages_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

struct HeldPages {
  void* block;
  std::size_t pages;
  Stream stream;
};

/// A program whose blocks are whole pages, up to the limit: nothing but whole free pages is ever
/// left, so that no request may fail.
class Packer {
 public:
  Packer(const std::string& conf, std::uint64_t page_mib, std::uint64_t lag_ns, std::size_t streams,
         std::uint64_t seed)
      : page_(page_mib * kMiB),
        rig_(conf + ",limit:" + std::to_string(kPages * page_mib) +
                 "M,page_size:" + std::to_string(page_mib) + "M,background_thread:false",
             simOf(kPages * 2 * page_, lag_ns)),
        random_(seed) {
    for (std::size_t i = 0; i < streams; ++i) streams_.push_back(rig_.stream());
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const std::size_t left = kPages - used_;
      const auto dice = random_() % 100;
      if (dice < 2) freeAll();
      if (dice == 3) rig_.allocator.emptyCache();
      if (left > 0 && (held_.empty() || dice < 60)) {
        take(random_() % 4 == 0 ? left : 1 + random_() % left);
      } else if (!held_.empty()) {
        letGo(random_() % held_.size());
      }
      if (random_() % 8 == 0) rig_.sim().advanceHost(30'000);
      if (i % 64 == 0) checkAtRest(rig_);
    }
    CHECK(refused_ == 0);
    CHECK(waits(rig_.sim()) == 0);
  }

 private:
  static constexpr std::size_t kPages = 64;

  void take(std::size_t pages) {
    const Stream stream = streams_[random_() % streams_.size()];
    try {
      held_.push_back({rig_.allocator.allocate(pages * page_, stream), pages, stream});
      rig_.touch(stream, held_.back().block);
      used_ += pages;
    } catch (const OutOfMemory& error) {
      if (refused_++ == 0) UNSCOPED_INFO(error.what());
    }
  }
  void letGo(std::size_t index) {
    std::swap(held_[index], held_.back());
    used_ -= held_.back().pages;
    rig_.allocator.free(held_.back().block);
    held_.pop_back();
  }
  void freeAll() {
    while (!held_.empty()) letGo(0);
  }

  const std::size_t page_;
  SimRig rig_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<HeldPages> held_;
  std::size_t used_ = 0;
  std::size_t refused_ = 0;
};

void packs(std::size_t streams) {
  for (const char* recycle : {"recycle:eager", "recycle:budget"}) {
    for (const std::uint64_t lag : std::initializer_list<std::uint64_t>{0, 100'000}) {
      for (std::uint64_t seed = 1; seed <= (kSlowBuild ? 3 : 6); ++seed) {
        const std::uint64_t page_mib = seed % 3 == 0 ? 16 : 2;
        INFO(recycle << ", pages of " << page_mib << " MiB, lag " << lag << ", seed " << seed);
        Packer(recycle, page_mib, lag, streams, seed).run(600);
      }
    }
  }
}

}  // namespace

TEST_CASE("on one stream every request that whole free pages suffice for is served",
          "[engine][pages][long]") {
  packs(1);
}

TEST_CASE("on several streams every request that whole free pages suffice for is served",
          "[engine][pages][long]") {
  packs(3);
}

TEST_CASE("a request that cannot be served changes nothing", "[engine][pages]") {
  SimRig rig("recycle:eager,limit:64M,background_thread:false", simOf(kGiB, 100'000));
  const Stream a = rig.stream(), b = rig.stream();
  void* low = rig.allocator.allocate(10 * kMiB, a);
  void* held = rig.allocator.allocate(10 * kMiB, a);
  void* high = rig.allocator.allocate(10 * kMiB, a);
  void* others = rig.allocator.allocate(10 * kMiB, b);
  for (void* block : {low, held, high}) rig.touch(a, block);
  rig.touch(b, others);
  for (void* block : {low, high, others}) rig.allocator.free(block);
  rig.sim().synchronizeDevice().orThrow();
  const std::int64_t reserved = reservedOf(rig.allocator);
  for (int i = 0; i < 20; ++i) CHECK_THROWS_AS(rig.allocator.allocate(60 * kMiB, a), OutOfMemory);
  CHECK(reservedOf(rig.allocator) == reserved);
  checkAtRest(rig);
  const std::uint64_t calls = mappingCalls(rig.sim());
  CHECK(rig.allocator.allocate(10 * kMiB, a) == low);
  CHECK(rig.allocator.allocate(10 * kMiB, a) == high);
  CHECK(rig.allocator.allocate(10 * kMiB, b) == others);
  CHECK(mappingCalls(rig.sim()) == calls);
}

}  // namespace cistern::test
