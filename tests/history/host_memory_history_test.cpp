// A history says which memory lies in the host's.
#include "cistern/pool.hpp"
#include "tests/history/history_support.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using recording::Event;
using recording::EventKind;
using recording::Recording;

/// A pool in host memory beside the default one.
struct TwoPlaces {
  TwoPlaces() : rig("background_thread:false"), pools(rig.allocator), host(pools, inHost()) {}
  ~TwoPlaces() {
    for (void* block : blocks) rig.allocator.free(block);
  }
  static MemPoolOptions inHost() {
    MemPoolOptions options;
    options.location = Location::kHost;
    return options;
  }
  void takeBoth() {
    blocks.push_back(host.allocate(5 * kMiB, s));
    blocks.push_back(rig.allocator.allocate(7 * kMiB, s));
  }
  void giveBackBoth() {
    for (void* block : blocks) rig.allocator.free(block);
    blocks.clear();
    rig.allocator.emptyCache();
  }

  SimRig rig;
  Pools pools;
  MemPool host;
  Stream s;
  std::vector<void*> blocks;
};

/// Bytes that lie at a place after the recording's events, for the pool of that user or the others.
std::uint64_t reservedAt(const Recording& of, Location location) {
  std::uint64_t bytes = 0;
  for (const Event& event : of.events) {
    if (event.location != location) continue;
    if (event.kind == EventKind::kMap) bytes += event.value;
    if (event.kind == EventKind::kUnmap) bytes -= event.value;
  }
  return bytes;
}

void check(TwoPlaces& of, const Recording& read) {
  const MemoryStats stats = of.rig.allocator.memoryStats();
  CHECK(reservedAt(read, Location::kHost) == stats.host_page_bytes);
  CHECK(reservedAt(read, Location::kDevice) == std::uint64_t(stats[Stat::kReservedBytes].current));
  for (const Event& event : read.events) {
    if (event.kind != EventKind::kMap && event.kind != EventKind::kUnmap) continue;
    const bool host = read.pools[read.placeOf(event).pool].uid == of.host.id().uid;
    CHECK((event.location == Location::kHost) == host);
  }
}

HistorySettings remembering(std::uint64_t most_events) {
  HistorySettings settings;
  settings.most_events = most_events;
  return settings;
}

}  // namespace

TEST_CASE("a history says which memory lies in the host's", "[history][host]") {
  TwoPlaces of;
  SECTION("which was there when it began") {
    of.takeBoth();
    of.rig.allocator.recordHistory(remembering(1'000));
    check(of, dumped(of.rig.allocator));
  }
  SECTION("which comes and goes") {
    of.rig.allocator.recordHistory(remembering(1'000));
    of.takeBoth();
    check(of, dumped(of.rig.allocator));
    of.giveBackBoth();
    check(of, dumped(of.rig.allocator));
    CHECK(reservedAt(dumped(of.rig.allocator), Location::kHost) == 0);
  }
  SECTION("which came in events that are not kept") {
    of.rig.allocator.recordHistory(remembering(3));
    for (int i = 0; i < 4; ++i) {
      of.takeBoth();
      check(of, dumped(of.rig.allocator));
      of.giveBackBoth();
    }
    check(of, dumped(of.rig.allocator));
  }
  SECTION("without events") {
    of.takeBoth();
    check(of, dumped(of.rig.allocator));
  }
}

TEST_CASE("a dump says of each page where it lies, also of a block that lies in both",
          "[history][host]") {
  sim::SimConfig config = simOf(64 * kMiB);
  config.host_page_capacity = kGiB;
  SimRig rig("background_thread:false,overflow:512MiB", config);
  std::vector<void*> blocks;
  for (int i = 0; i < 2; ++i) blocks.push_back(rig.allocator.allocate(40 * kMiB, Stream{}));
  CHECK(sumsOf(dumped(rig.allocator)) == Sums{64 * kMiB, 16 * kMiB});
  checkAgreement(rig.allocator);
  rig.allocator.recordHistory({});
  checkAgreement(rig.allocator);
  for (void* block : blocks) rig.allocator.free(block);
  checkAgreement(rig.allocator);
}

TEST_CASE("a file of a history with host memory is read whole, and replays", "[history][host]") {
  TwoPlaces of;
  const TemporaryFile file("host.trace");
  HistorySettings settings;
  settings.file = file.path().string();
  of.rig.allocator.recordHistory(settings);
  of.takeBoth();
  of.giveBackBoth();
  of.takeBoth();
  of.rig.allocator.stopHistory();
  check(of, readOne(file.path()));
  CHECK(recording::readCalls(file.path()).recordings.at(0).allocations == 4);
}

TEST_CASE("a request for host memory that fails has no figures of the device", "[history][host]") {
  sim::SimConfig config = simOf(kGiB);
  config.host_page_capacity = 16 * kMiB;
  SimRig rig("background_thread:false", config);
  Pools pools(rig.allocator);
  MemPool host(pools, TwoPlaces::inHost());
  rig.allocator.recordHistory(remembering(1'000));
  CHECK_THROWS_AS(host.allocate(20 * kMiB, Stream{}), OutOfMemory);
  CHECK_THROWS_AS(rig.allocator.allocate(2 * kGiB, Stream{}), OutOfMemory);
  const Recording read = dumped(rig.allocator);
  REQUIRE(read.failures.size() == 2);
  const recording::Failure &of_host = read.failures[0], &of_device = read.failures[1];
  CHECK((of_host.requested == 20 * kMiB && of_host.rounded == 20 * kMiB));
  CHECK((of_host.limit == 0 && of_host.device_total == 0 && of_host.device_free == 0));
  CHECK(of_host.advice.find("The host admits 16.00 MiB") != std::string::npos);
  CHECK(of_device.limit == kGiB);
}

TEST_CASE("memory events say where memory lies", "[history][host]") {
  TwoPlaces of;
  of.rig.allocator.recordMemoryEvents(true);
  of.takeBoth();
  of.giveBackBoth();
  std::uint64_t host = 0;
  for (const MemoryEvent& event : of.rig.allocator.takeMemoryEvents()) {
    CHECK((event.location == Location::kHost) == (event.pool == of.host.id()));
    host += event.location == Location::kHost ? 1 : 0;
  }
  CHECK(host >= 2);
}

}  // namespace cistern::test
