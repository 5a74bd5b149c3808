// A heap whose round does not come to rest by places alone freezes (docs/pages.md, "At rest").
#include "allocator/base/sabotage.hpp"
#include "allocator/engine/engine.hpp"
#include "tests/engine/pages/pages_support.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {
namespace {

/// Steps that are the same, of few blocks: each has a good part of the memory, and some live until
/// their successors are made. The GPU lags behind.
class FewBlocks {
 public:
  explicit FewBlocks(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 70; ++i) {
      const bool large = random() % 4 == 0;
      const std::uint64_t mib = large ? 100 + random() % 100 : 1 + random() % 30;
      made_.push_back({mib * kMiB, 1 + random() % 6, i % 9 == 0});
    }
    held_.resize(made_.size());
    device_.before = [this](Call call) { waits += call == Call::kSynchronizeEvent ? 1 : 0; };
  }
  ~FewBlocks() {
    for (void* block : held_) allocator.free(block);
    allocator.audit();
    CHECK(sim_.races().empty());
  }
  FewBlocks(const FewBlocks&) = delete;
  FewBlocks& operator=(const FewBlocks&) = delete;

  /// The calls of so many steps, whose blocks are so many times as large as usual.
  std::uint64_t steps(int count, std::uint64_t times = 1) {
    const std::uint64_t before = mappingCalls(sim_);
    for (int i = 0; i < count; ++i) step(times);
    return mappingCalls(sim_) - before;
  }
  /// A step that frees all it makes, and takes so much at its end.
  void calm(std::uint64_t last) {
    std::vector<void*> live;
    for (std::uint64_t i = 1; i <= 80; ++i) live.push_back(allocator.allocate(i * kMiB, stream_));
    live.push_back(allocator.allocate(last, stream_));
    for (void* block : live) allocator.free(block);
    sim_.synchronizeStream(stream_).orThrow();
  }
  bool frozen() {
    Heap& heap = *allocator.engine().heaps.find(stream_);
    const MutexLock lock(heap.mutex());
    return heap.rounds().frozen();
  }

  int waits = 0;

 private:
  struct Made {
    std::uint64_t bytes;
    std::uint64_t lives;  ///< until so many further ones are made
    bool survives;        ///< until its successor is made
  };

  void step(std::uint64_t times) {
    std::vector<void*> live(made_.size());
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const std::uint64_t bytes = made_[i].bytes * times;
      live[i] = allocator.allocate(bytes, stream_);
      const sim::Access all{toAddress(live[i]), bytes, sim::AccessKind::kWrite};
      sim_.launch(stream_, {"work", {all}, 2'000, nullptr}).orThrow();
      if (made_[i].survives) allocator.free(std::exchange(held_[i], std::exchange(live[i], {})));
      for (std::size_t old = 0; old <= i; ++old) {
        if (live[old] && old + made_[old].lives == i)
          allocator.free(std::exchange(live[old], nullptr));
      }
    }
    for (void* block : live) allocator.free(block);
  }
  sim::SimDevice sim_{simOf(16 * kGiB, 10'000'000)};
  InterposedDevice device_{sim_};

 public:
  CachingAllocator allocator{device_, optionsOf("backing:pages,background_thread:false")};

 private:
  const Stream stream_ = sim_.createStream().orThrow();
  std::vector<Made> made_;
  std::vector<void*> held_;
};

/// How many of twelve such programs make calls after a hundred steps.
int restless() {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    FewBlocks program(seed);
    (void)program.steps(100);
    count += program.steps(20) > 0;
  }
  return count;
}

}  // namespace

TEST_CASE("programs of a few huge blocks come to rest", "[engine][pages][long]") {
  CHECK(restless() <= 2);  // none, but where bounds are tight
}

#if defined(CISTERN_AUDIT_BUILD)

TEST_CASE("programs of a few huge blocks do not come to rest without a freeze",
          "[engine][pages][long]") {
  broken_rules = unsigned(Rule::kFreeze);
  CHECK(restless() >= 6);
  broken_rules = 0;
}

#endif

TEST_CASE("a heap freezes without a wait", "[engine][pages]") {
  FewBlocks program(1);
  (void)program.steps(60);
  CHECK(program.frozen());
  CHECK(program.waits == 0);
  CHECK(program.steps(10) == 0);
}

TEST_CASE("a heap that thaws takes longer and longer to freeze again", "[engine][pages][long]") {
  FewBlocks program(1);
  int freezes = 0;
  for (int i = 0; i < 200; ++i) {
    (void)program.steps(1);
    if (!program.frozen()) continue;
    ++freezes;
    program.allocator.emptyCache();
  }
  CHECK(freezes >= 1);
  CHECK(freezes <= 5);
  CHECK(program.allocator.memoryStats().pages.freezes == std::uint64_t(freezes));
}

TEST_CASE("a frozen heap thaws when its cache is emptied", "[engine][pages]") {
  FewBlocks program(1);
  (void)program.steps(60);
  REQUIRE(program.frozen());
  program.allocator.emptyCache();
  CHECK(!program.frozen());
}

TEST_CASE("a frozen heap thaws when the program takes much more than before", "[engine][pages]") {
  FewBlocks program(1);
  (void)program.steps(60);
  REQUIRE(program.frozen());
  (void)program.steps(1, 2);
  CHECK(!program.frozen());
}

TEST_CASE("a heap at rest does not freeze for what its beginning took", "[engine][pages]") {
  FewBlocks program(1);
  for (const unsigned times : {1U, 2U, 3U, 1U, 3U, 2U}) (void)program.steps(1, times);
  for (int i = 0; i < 60; ++i) {
    // Other sizes, seldom, for which pages move.
    program.calm(i % 20 == 19 ? 900 * kMiB : 100 * kMiB);
    CHECK(!program.frozen());
  }
}

}  // namespace cistern::test
