// The advice of an out of memory is exact: the limit that it names serves the request, and a page
// less does not.
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "allocator/engine/ground/request.hpp"
#include "tests/pools/pools_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

/// Blocks of odd sizes, on several streams in several pools, below a limit. If wanted, graphs that
/// hold pages, or some overflow.
class AdviceWorld {
 public:
  struct With {
    bool graphs = false, overflow = false;
  };
  AdviceWorld(const std::string& conf, unsigned seed, With with)
      : random_(seed), rig_(conf), with_(with) {
    for (int i = 0; i < 3; ++i) streams_.push_back(rig_.stream());
    for (auto& pool : pools_) pool = std::make_unique<MemPool>(rig_.pools);
    if (with.overflow) rig_.allocator.setOverflow((1 + below(16)) * 2 * kMiB);
    limit();
  }
  ~AdviceWorld() {
    for (void* block : held_) rig_.free(block);
  }
  AdviceWorld(const AdviceWorld&) = delete;
  AdviceWorld& operator=(const AdviceWorld&) = delete;

  /// Returns how many requests were refused.
  int run(int steps) {
    int refused = 0;
    for (int i = 0; i < steps; ++i) {
      if (below(60) == 0) pools_[0] = std::make_unique<MemPool>(rig_.pools);  // the other drains
      if (below(100) == 0) limit();
      if (with_.graphs && below(20) == 0) capture();
      const Asked request{bytes(), streams_[below(streams_.size())], below(4)};
      rig_.finish();
      if (std::optional<OutOfMemoryReport> report = attempt(request)) {
        ++refused;
        check(request, *report);
        for (std::size_t n = below(held_.size() + 1); n > 0; --n) freeAny();
      }
      if (held_.size() > 30 || (!held_.empty() && below(3) == 0)) freeAny();
    }
    return refused;
  }

 private:
  struct Asked {
    std::size_t bytes;
    Stream stream;
    std::size_t place;  ///< in a pool, or in the default one
  };
  std::size_t below(std::size_t end) { return random_() % end; }
  std::size_t bytes() {
    switch (below(4)) {
      case 0:
        return 1 + below(kMiB);
      case 1:
        return kMiB + 1 + below(4 * kMiB);
      default:
        return kMiB + 1 + below(30 * kMiB);
    }
  }
  void limit() {
    limit_ = (20 + below(60)) * kMiB;
    rig_.allocator.setLimit(limit_);
  }
  /// A graph in one of the pools that uses some memory there, in place of an earlier one.
  void capture() {
    const std::size_t n = below(graphs_.size());
    graphs_[n] = std::make_unique<Graph>(rig_.pools);
    const Stream stream = streams_[1 + below(streams_.size() - 1)];
    try {
      GraphCapture scope(*graphs_[n], stream, pools_[n]->id(), CaptureMode::kRelaxed);
      for (std::size_t i = 1 + below(3); i > 0; --i)
        rig_.free(rig_.allocate(1 + below(8 * kMiB), stream));
      scope.end();
    } catch (const OutOfMemory&) {
    }
  }
  void* serve(const Asked& r) {
    return r.place < 2 ? pools_[r.place]->allocate(r.bytes, r.stream)
                       : rig_.allocate(r.bytes, r.stream);
  }
  /// The report, if the request is refused.
  std::optional<OutOfMemoryReport> attempt(const Asked& request) {
    try {
      held_.push_back(serve(request));
      return std::nullopt;
    } catch (const OutOfMemory& error) {
      return error.report();
    }
  }
  void check(const Asked& request, const OutOfMemoryReport& report) {
    const std::uint64_t least = report.leastLimit();
    INFO(report.text());
    CHECK(least > limit_);
    rig_.allocator.setLimit(least - kPageUnit);
    CHECK(attempt(request));
    rig_.allocator.setLimit(least);
    CHECK_FALSE(attempt(request));
    rig_.allocator.setLimit(limit_);
  }
  void freeAny() {
    std::swap(held_[below(held_.size())], held_.back());
    if (below(4) == 0) rig_.allocator.recordStream(held_.back(), streams_[below(streams_.size())]);
    rig_.free(held_.back());
    held_.pop_back();
  }

  std::mt19937 random_;
  PoolRig rig_;
  std::vector<Stream> streams_{Stream{}};
  std::array<std::unique_ptr<MemPool>, 2> pools_;
  std::array<std::unique_ptr<Graph>, 2> graphs_;
  const With with_;
  std::vector<void*> held_;
  std::uint64_t limit_ = 0;
};

}  // namespace

TEST_CASE("the limit that an out of memory names serves, and a page less does not",
          "[pools][random]") {
  for (const char* conf : {"backing:pages", "backing:segments", "backing:pages,page_size:8MiB"}) {
    int refused = 0;
    for (unsigned seed = 1; seed <= (kSlowBuild ? 3u : 20u); ++seed) {
      INFO(conf << ", seed " << seed);
      refused += AdviceWorld(conf, seed, {}).run(300);
    }
    CHECK(refused > 100);
  }
}

TEST_CASE("the limit that an out of memory names is exact while graphs hold pages",
          "[pools][random]") {
  int refused = 0;
  for (unsigned seed = 1; seed <= (kSlowBuild ? 3u : 20u); ++seed) {
    INFO("seed " << seed);
    refused += AdviceWorld("backing:pages", seed, {.graphs = true}).run(300);
  }
  CHECK(refused > 100);
}

TEST_CASE("the limit that an out of memory names is exact with overflow", "[pools][random]") {
  int refused = 0;
  for (unsigned seed = 1; seed <= (kSlowBuild ? 3u : 20u); ++seed) {
    INFO("seed " << seed);
    refused += AdviceWorld("backing:pages", seed, {.overflow = true}).run(300);
  }
  CHECK(refused > 30);
}

TEST_CASE("memory that lies free is not counted as lost", "[pools]") {
  PoolRig rig("limit:1GiB", simOf(4 * kGiB));
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  rig.free(rig.allocate(64 * kMiB, s));
  void* const kept = pool.allocate(kMiB, s);
  const std::string text = refusalOf<OutOfMemory>([&] { (void)rig.allocate(2 * kGiB, s); });
  CHECK(text.find("A limit higher by 1.00 GiB would have made it fit") != std::string::npos);
  rig.free(kept);
}

}  // namespace cistern::test
