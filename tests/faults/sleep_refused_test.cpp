// Each request for host memory of a sleep and of a wake is refused in turn, alone or with all that
// follow it: the pool is as before, or asleep, or awake, and nothing is lost. Frees never fail.
#include <new>
#include <vector>

#include "cistern/graph.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/quiet_device.hpp"

namespace cistern::test {

#if defined(CISTERN_COUNTS_HOST_MEMORY)
namespace {

enum class RefusedVerb : std::uint8_t { kSleep, kSleepAfter, kFrees, kWake };

sim::SimConfig gibibyte() {
  sim::SimConfig config;
  config.capacity = kGiB;
  return config;
}

/// A pool with blocks between holes, and a graph with a result, on a device whose own host memory
/// is never refused.
struct RefusedProgram {
  RefusedProgram()
      : device(gibibyte()),
        allocator(device, Options::parse("page_size:2M")),
        pools(allocator),
        pool(pools),
        graph(pools),
        s(device.createStream().orThrow()) {
    for (std::uint32_t i = 0; i < 8; ++i) {
      blocks.push_back(pool.allocate(sizes[i % 2], s));
      write(i);
    }
    {
      GraphCapture capture(graph, s, pool.id());
      allocator.free(allocator.allocate(3 * kMiB, s));
      result = allocator.allocate(3 * kMiB, s);
      capture.end();
    }
    for (std::size_t i = 1; i < 8; i += 3) free(i);
    device.synchronizeDevice().orThrow();
  }
  ~RefusedProgram() {
    graph.reset();
    for (std::size_t i = 0; i < 8; ++i) free(i);
    allocator.free(result);
  }
  void write(std::uint32_t i) {
    const Address at = toAddress(blocks[i]);
    const auto effect = [=](sim::MemoryView& memory) { memory.write(at, &i, sizeof i); };
    device.sim().launch(s, {"write", {{at, 512, sim::AccessKind::kWrite}}, 100, effect}).orThrow();
  }
  void free(std::size_t i) {
    allocator.free(blocks[i]);
    blocks[i] = nullptr;
  }
  void run(RefusedVerb verb) {
    if (verb == RefusedVerb::kSleep) (void)pools.sleep({pool.id()});
    if (verb == RefusedVerb::kSleepAfter) (void)pools.sleep({pool.id()}, s);
    if (verb == RefusedVerb::kWake) (void)pools.wake({pool.id()});
    if (verb == RefusedVerb::kFrees) {
      for (const std::size_t i : {0, 2, 5}) free(i);
    }
  }
  void check() {
    allocator.audit();
    if (pools.isAsleep(pool.id())) (void)pools.wake({pool.id()});
    allocator.audit();
    device.sim().audit();
    for (std::uint32_t i = 0; i < 8; ++i) {
      if (blocks[i] == nullptr) continue;
      const Address at = toAddress(blocks[i]);
      const auto effect = [=, this](sim::MemoryView& memory) {
        std::uint32_t is = 0;
        memory.read(at, &is, sizeof is);
        wrong += is == i ? 0 : 1;
      };
      device.sim().launch(s, {"read", {{at, 512, sim::AccessKind::kRead}}, 100, effect}).orThrow();
    }
    graph.replay(s);
    device.synchronizeDevice().orThrow();
    CHECK(wrong == 0);
    CHECK(device.sim().races().empty());
  }

  static constexpr std::size_t sizes[] = {5 * kMiB, 200 * kKiB};
  QuietDevice device;
  CachingAllocator allocator;
  Pools pools;
  MemPool pool;
  Graph graph;
  Stream s;
  std::vector<void*> blocks;
  void* result = nullptr;
  int wrong = 0;
};

/// Refuses the nth request of the thread, or all from there on.
struct Refusing {
  Refusing(std::uint64_t nth, bool lasting)
      : at([this, lasting] {
          if (left > 1 || (left == 0 && !lasting)) {
            left -= left > 1 ? 1 : 0;
            return;
          }
          left = 0;
          met = true;
          throw std::bad_alloc();
        }),
        left(nth) {}
  AtHostAllocations at;
  std::uint64_t left;
  bool met = false;
};

}  // namespace

TEST_CASE("whichever request for host memory of a sleep or a wake is refused, nothing is lost",
          "[faults][sleep][long]") {
  const RefusedVerb verb = GENERATE(RefusedVerb::kSleep, RefusedVerb::kSleepAfter,
                                    RefusedVerb::kFrees, RefusedVerb::kWake);
  const bool lasting = GENERATE(false, true);
  std::uint64_t runs = 0;
  for (bool met = true; met; ++runs) {
    INFO("verb " << int(verb) << ", request " << runs + 1 << (lasting ? " and on" : ""));
    RefusedProgram program;
    const bool asleep = verb == RefusedVerb::kWake || verb == RefusedVerb::kFrees;
    if (asleep) (void)program.pools.sleep({program.pool.id()});
    bool thrown = false;
    {
      Refusing refusing(runs + 1, lasting);
      try {
        program.run(verb);
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      met = refusing.met;
    }
    const bool sleeps = program.pools.isAsleep(program.pool.id());
    CHECK(sleeps == (asleep ? thrown || verb == RefusedVerb::kFrees : !thrown));
    program.check();
    REQUIRE(runs < 2'000);
  }
  if (verb != RefusedVerb::kFrees) CHECK(runs > 20);
}
#endif

}  // namespace cistern::test
