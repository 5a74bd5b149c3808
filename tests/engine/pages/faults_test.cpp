// Any one device call may fail while pages are made, moved, revived, retired and given back.
#include "tests/engine/pages/pages_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kCapacity = 96 * kMiB;

/// A program that makes the backing do all that it can. It answers a failed request by asking once
/// more; `rest` holds wherever it says so.
class PagesScenario {
 public:
  PagesScenario(SimWork& work, const std::string& conf)
      : work_(work), allocator_(work.device(), Options::parse(conf)) {}

  void run(Stream a, Stream b) {
    void* first = use(a, take(16 * kMiB, a));
    void* small = use(a, take(kKiB, a));
    recycleAndRevive(a, first);
    allocator_.emptyCache();  // some of it is in use
    rest();
    work_.sim().advanceHost(10'000'000);
    allocator_.emptyCache();
    for (int i = 0; i < 3; ++i) moveOn(a);
    void* taken = use(b, take(88 * kMiB, b));  // a's pages, after a's work
    rest();
    allocator_.free(taken);
    use(a, taken = take(60 * kMiB, a));  // and back
    allocator_.emptyCache();
    allocator_.free(taken);
    allocator_.free(small);  // a's heap is empty: pages go home
    work_.sim().advanceHost(10'000'000);
    use(b, small = take(kKiB, b));
    allocator_.emptyCache();
    rest();
    allocator_.free(small);
  }
  // The next request is served, and then nothing is left.
  void finish(Stream b) {
    work_.sim().faults().clear();
    allocator_.free(use(b, allocator_.allocate(kCapacity - 8 * kMiB, b)));
    work_.sim().synchronizeDevice().orThrow();
    allocator_.emptyCache();
    CHECK(reservedOf(allocator_) == 0);
    CHECK(takenOf(work_.sim()) == 0);
    rest();
  }
  PageCounts pages() const { return pagesOf(allocator_); }

 private:
  void recycleAndRevive(Stream a, void* first) {
    void* second = use(a, take(8 * kMiB, a));
    void* fence = use(a, take(2 * kMiB, a));
    allocator_.free(first);
    void* moved = use(a, take(20 * kMiB, a));
    allocator_.free(moved);
    allocator_.free(second);
    void* both = use(a, take(24 * kMiB, a));
    rest();
    allocator_.free(both);
    allocator_.free(fence);
  }
  // Ever larger blocks, each behind a fence: all of their pages move each time.
  void moveOn(Stream a) {
    std::vector<void*> fences;
    for (std::size_t i = 0; i < 16; ++i) {
      void* block = use(a, take((24 + 2 * i) * kMiB, a));
      fences.push_back(use(a, take(2 * kMiB, a)));
      allocator_.free(block);
      work_.sim().advanceHost(100'000);
    }
    for (void* fence : fences) allocator_.free(fence);
  }
  void* take(std::size_t bytes, Stream stream) {
    try {
      return allocator_.allocate(bytes, stream);
    } catch (const OutOfMemory&) {
      rest();
      return allocator_.allocate(bytes, stream);
    }
  }
  void* use(Stream stream, void* block) {
    const sim::Access access{toAddress(block), allocator_.blockSize(block),
                             sim::AccessKind::kWrite};
    work_.sim().launch(stream, {"use", {access}, 50'000, nullptr}).orThrow();
    return block;
  }
  void rest() {
    allocator_.audit();
    std::uint64_t taken = 0;
    if (const Result<MemoryInfo> info = work_.device().memoryInfo()) {
      taken = info.value().total_bytes - info.value().free_bytes;
      CHECK(std::uint64_t(reservedOf(allocator_)) == taken);
    }
  }

  SimWork& work_;
  CachingAllocator allocator_;
};

// Runs it on a fresh device on which `plan` has planned faults; whether any was met.
template <class Plan>
bool runWith(const std::string& conf, Plan plan, PageCounts* counts = nullptr) {
  SimWork work(simOf(kCapacity, 20'000));
  const Streams streams(work.device(), 2);
  plan(work.sim().faults());
  try {
    PagesScenario scenario(work, conf);
    scenario.run(streams[0], streams[1]);
    if (counts) *counts = scenario.pages();
    scenario.finish(streams[1]);
  } catch (const DeviceFailure& failure) {
    CHECK(failure.error().call == Call::kMemoryInfo);  // the constructor's; there is no allocator
  }
  const bool met = work.sim().faults().hits() > 0;
  work.sim().faults().clear();
  work.sim().audit();
  CHECK(takenOf(work.sim()) == 0);
  const std::uint64_t refused = work.sim().faults().hits(Call::kCreateEvent);
  CHECK(countOf(work.sim(), Call::kCreateEvent) - refused ==
        countOf(work.sim(), Call::kDestroyEvent));
  for (const sim::RaceReport& race : work.sim().races()) UNSCOPED_INFO(race.text);
  CHECK(work.sim().races().empty());
  return met;
}

const char* const kConfs[] = {"background_thread:false,recycle:eager", "background_thread:false",
                              "background_thread:false,recycle:off"};

}  // namespace

TEST_CASE("the scenario of the page faults does all that pages can", "[engine][pages]") {
  PageCounts counts;
  CHECK_FALSE(runWith(
      kConfs[0], [](sim::FaultPlan&) {}, &counts));
  CHECK(counts.created > 30);
  CHECK(counts.recycled > 150);
  CHECK(counts.revived > 8);
  CHECK(counts.retired > 0);
  CHECK(counts.returned > 30);
  for (const char* conf : kConfs) CHECK_FALSE(runWith(conf, [](sim::FaultPlan&) {}));
}

TEST_CASE("any one device call may fail while pages come, move and go", "[engine][pages][long]") {
  constexpr std::uint64_t kStride = kSlowBuild ? 7 : 1;
  std::uint64_t first = 0;  // another with each configuration, so that each call fails in some
  for (const char* conf : kConfs) {
    for (ErrorKind kind : {ErrorKind::kOutOfMemory, ErrorKind::kOther}) {
      std::uint64_t nth = 1 + first++ % kStride;
      bool met = true;
      for (; met; nth += kStride) {
        INFO(conf << ", call " << nth);
        met = runWith(conf, [&](sim::FaultPlan& plan) { plan.failNthOfAll(nth, kind); });
      }
      CHECK(nth > 150);  // it makes enough calls to be worth it
    }
  }
}

TEST_CASE("any one call of each kind that pages use may fail", "[engine][pages][long]") {
  for (Call call : {Call::kReserve, Call::kCreatePage, Call::kReleasePage, Call::kMap,
                    Call::kSetAccess, Call::kUnmap, Call::kRecordEvent, Call::kWaitEvent}) {
    std::uint64_t nth = 1;
    bool met = true;
    for (; met; nth += kSlowBuild && nth > 3 ? 4 : 1) {
      INFO(callName(call) << " " << nth);
      met = runWith(kConfs[0], [&](sim::FaultPlan& plan) { plan.failNth(call, nth); });
    }
    CHECK(nth > 2);
  }
}

}  // namespace cistern::test
