// Settle: between two steps, memory behind blocks moves between the device and the host.
#include "tests/pools/overflow_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

/// A program of steps: some blocks live on, others live for a step.
struct Steps : OverflowRig {
  explicit Steps(std::uint64_t device = 64 * kMiB) : OverflowRig(device), s(stream()) {}
  ~Steps() {
    for (const Kept& of : kept) free(of.block);
  }

  struct Kept {
    void* block;
    std::size_t bytes;
    std::uint32_t seed;
  };
  void keep(std::size_t bytes) {
    const auto seed = std::uint32_t(kept.size() + 1);
    kept.push_back({filled(bytes, s, seed), bytes, seed});
  }
  void step(std::size_t bytes, int blocks = 4) {
    std::vector<void*> passing;
    for (int i = 0; i < blocks; ++i) {
      passing.push_back(filled(bytes, s, 100));
      CHECK(wrong(passing.back(), bytes, s, 100) == 0);
    }
    for (void* block : passing) free(block);
  }
  SettleReport settle(std::uint64_t most = UINT64_MAX) {
    const SettleReport report = allocator.settle(s, most);
    allocator.audit();
    sim().audit();
    return report;
  }
  std::uint64_t handedOut() { return allocator.overflow().handed_out; }
  std::uint64_t wrongKept() {
    std::uint64_t words = 0;
    for (const Kept& of : kept) words += wrong(of.block, of.bytes, s, of.seed);
    return words;
  }
  int keptOnHost() {
    int number = 0;
    for (const Kept& of : kept) number += onHost(of.block) ? 1 : 0;
    return number;
  }

  Stream s;
  std::vector<Kept> kept;
};

/// The settle comes while the gradients are there, or after they are freed.
enum class When : std::uint8_t { kBeforeFrees, kAfterFrees };

/// The bytes that 30 steps of SGD with momentum hand out on the host: of 200 MiB, the weights, the
/// state and the gradients need 64 each, and activations 96 before the gradients are there.
std::uint64_t trained(When when) {
  constexpr int kParameters = 8;
  Steps rig(200 * kMiB);
  for (int i = 0; i < kParameters; ++i) rig.keep(8 * kMiB);
  for (int step = 0; step < 30; ++step) {
    std::vector<void*> activations, gradients;
    for (int i = 0; i < 6; ++i) activations.push_back(rig.filled(16 * kMiB, rig.s, 100));
    for (int i = 0; i < kParameters; ++i) {
      if (!activations.empty()) {
        rig.free(activations.back());
        activations.pop_back();
      }
      gradients.push_back(rig.filled(8 * kMiB, rig.s, 101));
    }
    for (int i = 0; step == 0 && i < kParameters; ++i) rig.keep(8 * kMiB);
    if (when == When::kBeforeFrees) (void)rig.settle();
    for (void* block : gradients) {
      CHECK(rig.wrong(block, 8 * kMiB, rig.s, 101) == 0);
      rig.free(block);
    }
    if (when == When::kAfterFrees) (void)rig.settle();
    CHECK(rig.wrongKept() == 0);
  }
  return rig.handedOut();
}

}  // namespace

TEST_CASE("blocks that live on make room for those of a step", "[pools][settle][pages]") {
  Steps rig;
  for (int i = 0; i < 8; ++i) rig.keep(5 * kMiB);  // 40 MiB of 64
  std::uint64_t to_host = 0;
  for (int i = 0; i < 6; ++i) {
    rig.step(10 * kMiB);  // 40 MiB, too
    to_host += rig.settle().to_host;
    CHECK(rig.wrongKept() == 0);
  }
  CHECK(to_host >= 16 * kMiB);
  CHECK(rig.keptOnHost() >= 4);
  CHECK(rig.onDevice(rig.kept[0].block));  // the last that came go first
  CHECK(rig.onHost(rig.kept[7].block));
  CHECK(rig.allocator.overflow().step_bytes >= 2 * 16 * kMiB);
  const std::uint64_t before = rig.handedOut();
  for (int i = 0; i < 24; ++i) {
    rig.step(10 * kMiB);
    (void)rig.settle();
  }
  CHECK(rig.handedOut() - before <= 24 * 20 * kMiB / 6);  // attempts to come home, ever fewer
}

TEST_CASE("one step that overflows moves nothing", "[pools][settle][pages]") {
  Steps rig;
  for (int i = 0; i < 8; ++i) rig.keep(5 * kMiB);
  for (int i = 0; i < 4; ++i) {
    rig.step(kMiB);
    CHECK(rig.settle().to_host == 0);
  }
  rig.step(10 * kMiB);
  CHECK(rig.handedOut() > 0);
  CHECK(rig.settle().to_host == 0);
  rig.step(kMiB);
  CHECK(rig.settle().to_host == 0);
}

TEST_CASE("what has moved comes home when the steps leave room", "[pools][settle][pages]") {
  Steps rig;
  for (int i = 0; i < 8; ++i) rig.keep(5 * kMiB);
  for (int i = 0; i < 5; ++i) {
    rig.step(10 * kMiB);
    (void)rig.settle();
  }
  REQUIRE(rig.keptOnHost() > 0);
  std::uint64_t to_device = 0;
  for (int i = 0; i < 60; ++i) {
    rig.step(kMiB);
    to_device += rig.settle().to_device;
    CHECK(rig.wrongKept() == 0);
  }
  CHECK(to_device > 0);
  CHECK(rig.keptOnHost() == 0);
  CHECK(rig.inHostNow() == 0);
}

TEST_CASE("no more moves than it is told", "[pools][settle][pages]") {
  Steps rig;
  for (int i = 0; i < 8; ++i) rig.keep(5 * kMiB);
  for (int i = 0; i < 3; ++i) {
    rig.step(10 * kMiB);
    CHECK(rig.settle(3 * kMiB).to_host <= 3 * kMiB);  // one page and a half
  }
  CHECK(rig.keptOnHost() > 0);
  rig.step(10 * kMiB);
  CHECK(rig.settle(0).to_host == 0);
}

TEST_CASE("blocks that are freed after they moved leave nothing behind", "[pools][settle][pages]") {
  Steps rig;
  for (int i = 0; i < 8; ++i) rig.keep(5 * kMiB);
  for (int i = 0; i < 4; ++i) {
    rig.step(10 * kMiB);
    (void)rig.settle();
  }
  const int on_host = rig.keptOnHost();
  REQUIRE(on_host > 0);
  CHECK(rig.allocator.memoryStats().host_page_allocated_bytes > 0);
  for (const Steps::Kept& of : rig.kept) rig.free(of.block);
  rig.kept.clear();
  rig.finish();
  (void)rig.settle();
  CHECK(rig.allocator.memoryStats().host_page_allocated_bytes == 0);
  for (int i = 0; i < 4; ++i) {
    rig.step(10 * kMiB);
    (void)rig.settle();
  }
  CHECK(rig.inHostNow() == 0);
}

TEST_CASE("what graphs, exports and other streams hold never moves", "[pools][settle][pages]") {
  Steps rig;
  for (int i = 0; i < 6; ++i) rig.keep(5 * kMiB);
  const Stream t = rig.stream();
  void* const others = rig.allocate(4 * kMiB, t);
  void* const recorded = rig.allocate(4 * kMiB, rig.s);
  rig.allocator.recordStream(recorded, t);
  const auto exported = rig.allocator.exportBlock(rig.kept[5].block);
  MemPool pool(rig.pools);
  Graph graph(rig.pools);
  void* result = nullptr;
  {
    GraphCapture capture(graph, rig.s, pool.id());
    result = rig.allocate(6 * kMiB, rig.s);
    rig.work.fill(rig.s, toAddress(result), 6 * kMiB, 9);
    capture.end();
  }
  for (int i = 0; i < 6; ++i) {
    rig.step(10 * kMiB);
    (void)rig.settle();
    graph.replay(rig.s);
    CHECK(rig.wrong(result, 6 * kMiB, rig.s, 9) == 0);
    CHECK(rig.wrongKept() == 0);
  }
  CHECK(rig.keptOnHost() > 0);
  for (void* block : {others, recorded, result, rig.kept[5].block}) CHECK(rig.onDevice(block));
  rig.free(others);
  rig.free(recorded);
  rig.free(result);
}

TEST_CASE("a block that is made again at its address does not live on", "[pools][settle][pages]") {
  const std::uint64_t by_hand = trained(When::kAfterFrees), by_hook = trained(When::kBeforeFrees);
  INFO(by_hand / kMiB << " MiB by hand, " << by_hook / kMiB << " by the hook");
  CHECK(by_hook <= by_hand + 16 * kMiB);
}

TEST_CASE("a block that a cache hands out again does not live on", "[pools][settle][pages]") {
  Steps rig(4 * kGiB);  // of small devices no large block is cached
  rig.allocator.setLimit(64 * kMiB);
  for (int i = 0; i < 6; ++i) rig.keep(4 * kMiB);
  void* passing = rig.filled(8 * kMiB, rig.s, 100);
  std::uint64_t to_host = 0;
  for (int i = 0; i < 8; ++i) {
    rig.step(i < 3 ? kMiB : 10 * kMiB);
    to_host += rig.settle().to_host;
    CHECK(rig.onDevice(passing));
    void* const more = rig.allocate(16 * kMiB, rig.s);  // else the cache keeps nothing: low water
    rig.free(passing);
    passing = rig.allocate(8 * kMiB, rig.s);
    rig.free(more);
  }
  CHECK(to_host > 0);
  rig.free(passing);
}

TEST_CASE("settle refuses a stream that it does not know, or that is captured",
          "[pools][settle][pages]") {
  Steps rig;
  CHECK_THROWS_AS(rig.allocator.settle(Stream{0xdead}), InvalidArgument);
  Graph graph(rig.pools);
  GraphCapture capture(graph, rig.s);
  const std::string refused =
      refusalOf<InvalidArgument>([&] { (void)rig.allocator.settle(rig.s); });
  CHECK(refused.find("is being captured") != std::string::npos);
  capture.end();
}

TEST_CASE("whatever call of a settle fails, no block loses its bytes", "[pools][settle][pages]") {
  int runs = 0, moved = 0;  // a failed move may make the next step slow: then none follows soon
  for (int call = 1; call <= 60; call += kSlowBuild ? 7 : 1) {
    Steps rig;
    for (int i = 0; i < 8; ++i) rig.keep(5 * kMiB);
    for (int i = 0; i < 2; ++i) {  // each step reads all, else the one after the move seems slow
      if (i > 0) (void)rig.settle();
      rig.step(10 * kMiB);
      REQUIRE(rig.wrongKept() == 0);
    }
    rig.sim().faults().failNthOfAll(std::uint64_t(call), ErrorKind::kOther);
    try {
      (void)rig.settle();
    } catch (const DeviceFailure&) {
    }
    rig.sim().faults().clear();
    rig.allocator.audit();
    for (int i = 0; i < 4; ++i) {
      REQUIRE(rig.wrongKept() == 0);
      rig.step(10 * kMiB);
      (void)rig.settle();
    }
    REQUIRE(rig.wrongKept() == 0);
    ++runs;
    moved += rig.keptOnHost() > 0 ? 1 : 0;
  }
  CHECK(2 * moved > runs);
}

TEST_CASE("a settle takes nothing away from copies that it could not wait for at once",
          "[pools][settle][pages]") {
  for (std::uint64_t first = 1; first <= 4; ++first) {
    Steps rig;
    for (int i = 0; i < 8; ++i) rig.keep(5 * kMiB);
    rig.step(10 * kMiB);
    (void)rig.settle();
    rig.step(10 * kMiB);
    for (std::uint64_t call = first; call < first + 3; ++call)
      rig.sim().faults().failNth(Call::kSynchronizeStream, call, ErrorKind::kOther);
    try {
      (void)rig.allocator.settle(rig.s);
    } catch (const DeviceFailure&) {
    }
    rig.sim().faults().clear();
    CHECK(rig.sim().races().empty());
    CHECK(rig.wrongKept() == 0);
  }
}

TEST_CASE("a program whose state came to lie on the host brings it home",
          "[pools][settle][pages]") {
  Steps rig;
  void* ballast = rig.allocate(60 * kMiB, rig.s);
  for (int i = 0; i < 4; ++i) rig.keep(6 * kMiB);
  CHECK(rig.keptOnHost() == 4);
  rig.free(std::exchange(ballast, nullptr));
  for (int i = 0; i < 40; ++i) {
    rig.step(kMiB);
    CHECK(rig.settle().to_host == 0);
    CHECK(rig.wrongKept() == 0);
  }
  CHECK(rig.allocator.memoryStats().host_page_allocated_bytes <= 4 * 2 * kMiB * 2);
}

}  // namespace cistern::test
