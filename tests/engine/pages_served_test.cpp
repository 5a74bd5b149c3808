// Whatever the free pages are enough for is served, wherever they lie, and without a wait.
#include "tests/engine/pages_support.hpp"

namespace cistern::test {
namespace {

struct Held {
  void* block;
  std::size_t units;
  Stream stream;
};

/// A program whose blocks are whole pages of 2 MiB, up to the limit: nothing but whole free pages
/// is ever left, so that no request may fail.
class Packer {
 public:
  Packer(const std::string& conf, std::uint64_t lag_ns, std::size_t streams, std::uint64_t seed)
      : rig_(conf + ",limit:128M,page_size:2M,background_thread:false", simOf(kGiB, lag_ns)),
        random_(seed) {
    for (std::size_t i = 0; i < streams; ++i) streams_.push_back(rig_.stream());
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const std::size_t left = kUnits - used_;
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
  static constexpr std::size_t kUnits = 64;

  void take(std::size_t units) {
    const Stream stream = streams_[random_() % streams_.size()];
    try {
      held_.push_back({rig_.allocator.allocate(units * 2 * kMiB, stream), units, stream});
      rig_.touch(stream, held_.back().block);
      used_ += units;
    } catch (const OutOfMemory& error) {
      if (refused_++ == 0) UNSCOPED_INFO(error.what());
    }
  }
  void letGo(std::size_t index) {
    std::swap(held_[index], held_.back());
    used_ -= held_.back().units;
    rig_.allocator.free(held_.back().block);
    held_.pop_back();
  }
  void freeAll() {
    while (!held_.empty()) letGo(0);
  }

  SimRig rig_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<Held> held_;
  std::size_t used_ = 0;
  std::size_t refused_ = 0;
};

void packs(std::size_t streams) {
  for (const char* recycle : {"recycle:eager", "recycle:budget"}) {
    for (std::uint64_t lag : {0, 100'000}) {
      for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        INFO(recycle << ", lag " << lag << ", seed " << seed);
        Packer(recycle, lag, streams, seed).run(600);
      }
    }
  }
}

}  // namespace

TEST_CASE("on one stream every request that whole free pages suffice for is served",
          "[engine][pages]") {
  packs(1);
}

TEST_CASE("on several streams every request that whole free pages suffice for is served",
          "[engine][pages]") {
  packs(3);
}

}  // namespace cistern::test
