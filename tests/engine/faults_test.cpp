// Any one device call may fail: nothing leaks, nothing breaks, and the next request is served.
#include "tests/engine/engine_support.hpp"
#include "tests/support/lying_device.hpp"

namespace cistern::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// A program in small: it grows, frees across streams, fills the device so that streams take each
/// other's memory, gives the cache back, and ends with blocks held and pending. It answers a failed
/// request by asking once more.
class Scenario {
 public:
  explicit Scenario(SimWork& work) : work_(work), allocator_(work.device(), optionsOf()) {}

  void run(Stream a, Stream b, Stream c) {
    void* small = take(kKiB, a);
    void* medium = take(3 * kMiB, a);
    void* shared = take(11 * kMiB, b);
    allocator_.recordStream(shared, c);
    use(c, shared);
    allocator_.free(shared);
    allocator_.free(take(kKiB, a));
    use(a, medium);
    allocator_.free(medium);
    void* adopted = take(15 * kMiB, c);
    use(c, adopted);
    void* large = take(30 * kMiB, a);
    use(a, large);
    allocator_.free(large);
    void* borrowed = take(26 * kMiB, b);  // of 64 MiB: only in a's order, or after it
    use(b, borrowed);
    allocator_.free(borrowed);
    allocator_.audit();
    allocator_.emptyCache();
    allocator_.free(adopted);
    void* most = take(58 * kMiB, c);  // only when all of the rest has gone back
    use(c, most);
    allocator_.free(most);
    void* kept = take(20 * kMiB, b);
    allocator_.recordStream(kept, a);
    use(b, kept);
    allocator_.free(kept);
    allocator_.free(small);
    allocator_.audit();
    (void)take(kMiB, a);
  }

 private:
  void* take(std::size_t bytes, Stream stream) {
    try {
      return allocator_.allocate(bytes, stream);
    } catch (const OutOfMemory&) {
      allocator_.audit();
      return allocator_.allocate(bytes, stream);
    }
  }
  void use(Stream stream, void* block) {
    const sim::Access access{toAddress(block), allocator_.blockSize(block),
                             sim::AccessKind::kWrite};
    work_.sim().launch(stream, {"use", {access}, 500'000, nullptr}).orThrow();
  }

  SimWork& work_;
  CachingAllocator allocator_;
};

// Runs it on a fresh device on which `plan` has planned faults; whether any was met.
template <class Plan>
bool runWith(Plan plan) {
  SimWork work(simOf(64 * kMiB, 20'000));
  const Streams streams(work.device(), 3);
  plan(work.sim().faults());
  try {
    Scenario(work).run(streams[0], streams[1], streams[2]);
  } catch (const DeviceFailure& failure) {
    CHECK(failure.error().call == Call::kMemoryInfo);  // the constructor's; there is no allocator
  }
  const bool met = work.sim().faults().hits() > 0;
  work.sim().faults().clear();
  work.sim().audit();
  CHECK(takenOf(work.sim()) == 0);
  for (const sim::RaceReport& race : work.sim().races()) UNSCOPED_INFO(race.text);
  CHECK(work.sim().races().empty());
  return met;
}

}  // namespace

TEST_CASE("the scenario of the fault tests runs without faults", "[engine]") {
  CHECK_FALSE(runWith([](sim::FaultPlan&) {}));
}

TEST_CASE("any one device call may fail", "[engine][long]") {
  for (ErrorKind kind : {ErrorKind::kOutOfMemory, ErrorKind::kOther}) {
    std::uint64_t nth = 0;
    for (bool met = true; met;) {
      ++nth;
      INFO("call " << nth << (kind == ErrorKind::kOutOfMemory ? ": out of memory" : ": other"));
      met = runWith([&](sim::FaultPlan& plan) { plan.failNthOfAll(nth, kind); });
    }
    CHECK(nth > 60);  // it makes enough calls to be worth it
  }
}

TEST_CASE("any two device calls in a row may fail, unless both are the last free", "[engine]") {
  std::uint64_t nth = 1;
  bool met = true;
  while (met) {
    INFO("calls " << nth << " and the next");
    SimWork work(simOf(64 * kMiB, 20'000));
    const Streams streams(work.device(), 3);
    work.sim().faults().failNthOfAll(nth);
    work.sim().faults().failNthOfAll(nth + 1);
    try {
      Scenario(work).run(streams[0], streams[1], streams[2]);
    } catch (const DeviceFailure&) {
    } catch (const OutOfMemory&) {
    }
    met = work.sim().faults().hits() == 2;
    CHECK(work.sim().races().empty());
    ++nth;
  }
}

TEST_CASE("every call of one kind may fail for good", "[engine]") {
  for (Call call : {Call::kCreateEvent, Call::kRecordEvent, Call::kQueryEvent, Call::kWaitEvent,
                    Call::kQueryStream, Call::kCaptureInfo, Call::kDestroyEvent}) {
    INFO(callName(call));
    CHECK(runWith([&](sim::FaultPlan& plan) { plan.failAll(call); }));
  }
}

TEST_CASE("calls may fail at random", "[engine][long]") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimWork work(simOf(64 * kMiB, 20'000));
    const Streams streams(work.device(), 3);
    CachingAllocator allocator(work.device(), optionsOf());
    work.sim().faults().failRandomly(0.2, seed);
    std::vector<void*> held;
    for (std::size_t i = 0; i < 200; ++i) {
      try {
        held.push_back(allocator.allocate((i % 7) * kMiB + kKiB, streams[i % 3]));
      } catch (const OutOfMemory&) {
      }
      if (i % 3 == 0 && !held.empty()) allocator.recordStream(held.back(), streams[(i + 1) % 3]);
      if (i % 2 == 0 && !held.empty()) {
        allocator.free(held[i % held.size()]);
        held.erase(held.begin() + std::ptrdiff_t(i % held.size()));
      }
      if (i % 50 == 49) allocator.emptyCache();
    }
    allocator.audit();
    work.sim().faults().clear();
    for (void* block : held) allocator.free(block);
    void* all = allocator.allocate(64 * kMiB, streams[0]);  // also what no event could mark
    allocator.free(all);
    allocator.emptyCache();
    CHECK(reservedOf(allocator) == std::int64_t(takenOf(work.sim())));
    CHECK(takenOf(work.sim()) == 0);
  }
}

TEST_CASE("what no device may return is refused by name, and goes back", "[engine]") {
  for (const Address wrong : {Address{0}, Address{513}, ~Address{0} - 511, Address{1} << 57}) {
    CAPTURE(wrong);
    SimWork work(simOf(kGiB));
    LyingDevice device(work.device());
    CachingAllocator allocator(device, optionsOf("background_thread:false"));
    device.call = onPages(allocator) ? Call::kReserve : Call::kMalloc;
    device.instead = wrong;
    void* block = nullptr;
    if (onPages(allocator)) {  // as if it had refused: memory comes in segments from then on
      block = allocator.allocate(kMiB);
      CHECK(countOf(work.sim(), Call::kMalloc) == 1);
    } else {
      CHECK_THROWS_WITH(allocator.allocate(kMiB),
                        ContainsSubstring("malloc failed: broken promise"));
      CHECK(reservedOf(allocator) == 0);
      CHECK(device.taken_back == (wrong != 0 ? 1 : 0));
    }
    CHECK(device.taken_back >= (wrong != 0 ? 1 : 0));  // the trial of pages gives back its own
    allocator.audit();
    device.instead.reset();
    allocator.free(allocator.allocate(kMiB));
    allocator.free(block);
  }
}

}  // namespace cistern::test
