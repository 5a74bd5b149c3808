// A history says what the allocator's snapshot says, with what came before it.
#include <algorithm>
#include <span>
#include <string>

#include "cistern/pool.hpp"
#include "tests/history/history_support.hpp"

namespace cistern::test {
namespace {

using recording::Event;
using recording::EventKind;
using recording::Recording;

std::size_t count(const Recording& of, EventKind kind) {
  return std::size_t(std::ranges::count(of.events, kind, &Event::kind));
}
/// Those that are not of what was there before.
std::span<const Event> recorded(const Recording& of) {
  return std::span(of.events).subspan(of.first_recorded);
}

HistorySettings ring(std::uint64_t most_events = 100'000) {
  HistorySettings settings;
  settings.most_events = most_events;
  return settings;
}

void checkSame(SimRig& rig) {
  CHECK(pictureOf(dumped(rig.allocator)) == pictureOf(rig.allocator.snapshot()));
}

TEST_CASE("a dump without a history says what lives and what is reserved") {
  SimRig rig;
  const Streams streams(rig.allocator, 1);
  void* const kept = rig.allocator.allocate(3 * kMiB, streams[0]);
  void* const freed = rig.allocator.allocate(1000, Stream{});
  void* const small = rig.allocator.allocate(1000, Stream{});
  rig.allocator.free(freed);
  checkSame(rig);
  const Recording read = dumped(rig.allocator);
  CHECK(read.first_recorded == read.events.size());
  CHECK(read.allocations == 2);
  CHECK(read.device.find("sim") != std::string::npos);
  rig.allocator.free(kept);
  rig.allocator.free(small);
}

TEST_CASE("allocations and frees are events, in order, also those that caches would serve") {
  SimRig rig;
  void* const before = rig.allocator.allocate(700, Stream{});
  rig.allocator.free(rig.allocator.allocate(512, Stream{}));  // the cache has it
  rig.allocator.recordHistory(ring());
  CHECK(rig.allocator.recordsHistory());
  void* const one = rig.allocator.allocate(512, Stream{});
  rig.allocator.free(before);
  rig.allocator.free(one);
  void* const again = rig.allocator.allocate(400, Stream{});
  const Recording read = dumped(rig.allocator);
  const std::span<const Event> events = recorded(read);
  REQUIRE(events.size() == 4);
  CHECK(events[0].kind == EventKind::kAllocate);
  CHECK(events[0].value == 512);
  CHECK(read.placeOf(events[0]).address == toAddress(one));
  CHECK(events[1].kind == EventKind::kFree);
  CHECK(read.placeOf(events[1]).address == toAddress(before));
  CHECK(events[2].kind == EventKind::kFree);
  CHECK(events[3].value == 400);
  checkSame(rig);
  rig.allocator.free(again);
}

TEST_CASE("when a history has ended, threads hit their caches again") {
  SimRig rig;
  rig.allocator.free(rig.allocator.allocate(512, Stream{}));
  rig.allocator.recordHistory(ring());
  void* const during = rig.allocator.allocate(512, Stream{});
  rig.allocator.stopHistory();
  rig.allocator.stopHistory();
  CHECK_FALSE(rig.allocator.recordsHistory());
  rig.allocator.free(during);
  void* const block = rig.allocator.allocate(512, Stream{});
  rig.allocator.free(block);
  CHECK(rig.allocator.allocate(512, Stream{}) == block);
  CHECK(dumped(rig.allocator).allocations == 1);
  rig.allocator.free(block);
}

TEST_CASE("a ring that has forgotten its oldest events says what lived before the others") {
  SimRig rig;
  rig.allocator.recordHistory(ring(16));
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 40; ++i) {
    blocks.push_back(rig.allocator.allocate(600 + i * 40 * kKiB, Stream{}));
    if (i % 3 == 2) {
      rig.allocator.free(blocks[blocks.size() / 2]);
      blocks.erase(blocks.begin() + std::ptrdiff_t(blocks.size() / 2));
    }
  }
  const Recording read = dumped(rig.allocator);
  CHECK(recorded(read).size() == 16);
  checkSame(rig);
  for (void* block : blocks) rig.allocator.free(block);
  rig.allocator.emptyCache();
  checkSame(rig);
}

TEST_CASE("a block that other streams use has its end of uses") {
  SimRig rig;
  const Streams streams(rig.allocator, 2);
  rig.allocator.recordHistory(ring());
  void* const block = rig.allocator.allocate(kMiB, streams[0]);
  rig.touch(streams[1], block);
  rig.allocator.recordStream(block, streams[1]);
  rig.allocator.free(block);
  CHECK(count(dumped(rig.allocator), EventKind::kFree) == 1);
  CHECK(count(dumped(rig.allocator), EventKind::kUsesEnd) == 0);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  const Recording read = dumped(rig.allocator);
  CHECK(count(read, EventKind::kUsesEnd) == 1);
  CHECK(read.stream_uses == recording::StreamUses::kRecorded);
  checkSame(rig);
}

TEST_CASE("memory that comes and goes is part of a history") {
  SimRig rig;
  rig.allocator.recordHistory(ring());
  rig.allocator.free(rig.allocator.allocate(30 * kMiB, Stream{}));
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  const Recording read = dumped(rig.allocator);
  CHECK(read.has_reserved);
  const EventKind comes = onPages(rig.allocator) ? EventKind::kMap : EventKind::kReserve;
  const EventKind goes = onPages(rig.allocator) ? EventKind::kUnmap : EventKind::kRelease;
  CHECK(count(read, comes) > 0);
  CHECK(count(read, goes) > 0);
  CHECK(pictureOf(read).reserved.empty());
}

TEST_CASE("a request that fails is an event with the report's figures") {
  SimRig rig("", simOf(64 * kMiB));
  rig.allocator.recordHistory(ring());
  void* const held = rig.allocator.allocate(40 * kMiB, Stream{});
  std::string advice;
  try {
    (void)rig.allocator.allocate(40 * kMiB, Stream{});
    FAIL("it fits");
  } catch (const OutOfMemory& error) {
    advice = error.report().advice();
  }
  const Recording read = dumped(rig.allocator);
  CHECK(read.source == recording::Source::kDump);
  REQUIRE(read.failures.size() == 1);
  CHECK(read.failures[0].requested == 40 * kMiB);
  CHECK(read.failures[0].allocated == 40 * kMiB);
  CHECK(read.failures[0].advice == advice);
  CHECK(read.events.back().kind == EventKind::kFailed);
  rig.allocator.free(held);
  CHECK(dumped(rig.allocator).source != recording::Source::kDump);
}

TEST_CASE("a mark names a moment") {
  SimRig rig;
  rig.allocator.mark("nobody records");
  rig.allocator.recordHistory(ring());
  rig.allocator.mark("step \"1\"\n");
  rig.allocator.free(rig.allocator.allocate(1, Stream{}));
  rig.allocator.mark("step 2");
  const Recording read = dumped(rig.allocator);
  CHECK(read.marks == std::vector<std::string>{"step \"1\"\n", "step 2"});
}

TEST_CASE("blocks have the labels of the scopes that they were allocated in") {
  SimRig rig;
  const LabelScope run("run");
  rig.allocator.recordHistory(ring());
  void* const outer = rig.allocator.allocate(1000, Stream{});
  void* inner = nullptr;
  {
    const LabelScope layer("layer");
    inner = rig.allocator.allocate(2000, Stream{});
    pushLabel("pushed");
    rig.allocator.free(rig.allocator.allocate(4000, Stream{}));
    popLabel();
    rig.allocator.free(rig.allocator.allocate(500, Stream{}));
  }
  const Recording read = dumped(rig.allocator);
  std::vector<std::string> names;
  for (const Event& event : recorded(read)) {
    if (event.kind == EventKind::kAllocate)
      names.push_back(read.labels[read.placeOf(event).label].name);
  }
  CHECK(names == std::vector<std::string>{"run", "layer", "pushed", "layer"});
  CHECK(read.labels.size() == 4);
  std::vector<std::pair<std::string, std::uint64_t>> peaks;
  for (const LabelUsage& usage : rig.allocator.labelUsage()) {
    if (usage.name.find("run") == 0) peaks.emplace_back(usage.name, usage.peak);
  }
  CHECK(peaks == std::vector<std::pair<std::string, std::uint64_t>>{
                     {"run", 7000}, {"run / layer", 6000}, {"run / layer / pushed", 4000}});
  rig.allocator.free(inner);
  rig.allocator.free(outer);
  for (const LabelUsage& usage : rig.allocator.labelUsage()) CHECK(usage.current == 0);
  popLabel();
}

TEST_CASE("the path of a deep label keeps its innermost names") {
  SimRig rig;
  rig.allocator.recordHistory({});
  const std::string name(200, 'x');
  for (int depth = 0; depth < 1'000; ++depth) pushLabel(name);
  pushLabel("innermost");
  void* const block = rig.allocator.allocate(1000, Stream{});
  for (int depth = 0; depth <= 1'000; ++depth) popLabel();
  const std::vector<LabelUsage> usage = rig.allocator.labelUsage();
  REQUIRE(usage.size() == 1'001);
  CHECK(usage.back().name.size() < 5'000);
  CHECK(usage.back().name.ends_with(" / innermost"));
  CHECK(usage.back().name.starts_with("… / x"));
  rig.allocator.free(block);
}

TEST_CASE("blocks have the pool that they were allocated in") {
  SimRig rig;
  Pools pools(rig.allocator);
  rig.allocator.recordHistory(ring());
  MemPool pool(pools);
  void* block = nullptr;
  {
    const MemPoolScope scope(pool);
    block = rig.allocator.allocate(5000, Stream{});
  }
  const Recording read = dumped(rig.allocator);
  const auto of = std::ranges::find(read.events, EventKind::kAllocate, &Event::kind);
  REQUIRE(of != read.events.end());
  CHECK(read.pools[read.placeOf(*of).pool].uid == pool.id().uid);
  checkSame(rig);
  rig.allocator.free(block);
  checkSame(rig);
}

TEST_CASE("a second recording begins anew") {
  SimRig rig;
  rig.allocator.recordHistory(ring());
  void* const block = rig.allocator.allocate(1000, Stream{});
  rig.allocator.recordHistory(ring());
  const Recording read = dumped(rig.allocator);
  CHECK(recorded(read).empty());
  CHECK(read.allocations == 1);
  rig.allocator.free(block);
}

TEST_CASE("settings that cannot be are refused, and files that cannot be written") {
  SimRig rig;
  CHECK_THROWS_AS(rig.allocator.recordHistory(ring(0)), InvalidArgument);
  CHECK_FALSE(rig.allocator.recordsHistory());
  CHECK_THROWS_AS(rig.allocator.dumpHistory("/nowhere/at/all"), Error);
}

}  // namespace
}  // namespace cistern::test
