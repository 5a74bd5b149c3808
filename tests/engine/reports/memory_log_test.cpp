// What is told of memory that comes and goes, which together gives what a snapshot has.
#include <map>

#include "allocator/engine/ground/observer.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {
namespace {

/// What has memory behind it: unit by unit, and to whom it belongs.
using Memory = std::map<Address, std::pair<Stream, MempoolId_t>>;

void each(Address from, std::uint64_t bytes, const std::function<void(Address)>& visit) {
  for (Address at = from; at < from + bytes; at += 2 * kMiB) visit(at);
}

// Nothing is put where something is, and nothing taken from where nothing is.
void apply(const MemoryEvent& event, Memory& memory) {
  const bool comes =
      event.action == MemoryAction::kPageMap || event.action == MemoryAction::kSegmentAlloc;
  each(event.address, event.bytes, [&](Address at) {
    if (comes)
      CHECK(memory.emplace(at, std::pair(event.stream, event.pool)).second);
    else
      CHECK(memory.erase(at) == 1);
  });
}

Memory memoryOf(const Snapshot& snapshot) {
  Memory memory;
  for (const SnapshotSegment& segment : snapshot.segments) {
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.use == BlockUse::kUnmapped) continue;
      const Address from = block.address / (2 * kMiB) * (2 * kMiB);
      each(from, block.address + block.bytes - from,
           [&](Address at) { memory.emplace(at, std::pair(segment.stream, segment.pool)); });
    }
  }
  return memory;
}

/// Blocks of many sizes come and go on two streams, each behind a smaller one that stays a while.
void churn(SimRig& rig, const Streams& streams, const std::function<void()>& look) {
  std::vector<void*> kept;
  for (std::size_t step = 0; step < 60; ++step) {
    const Stream stream = streams[step % 3 == 0 ? 1 : 0];
    void* const block = rig.allocator.allocate((6 + 4 * (step % 9)) * kMiB, stream);
    kept.push_back(rig.allocator.allocate(2 * kMiB + step * kKiB, stream));
    rig.touch(stream, block);
    rig.allocator.free(block);
    if (kept.size() > 5) {
      rig.allocator.free(kept.front());
      kept.erase(kept.begin());
    }
    if (step % 20 == 19) rig.sim().synchronizeDevice().orThrow();
    if (step % 20 == 19) rig.allocator.emptyCache();
    look();
  }
  for (void* block : kept) rig.allocator.free(block);
}

}  // namespace

TEST_CASE("what is told of memory adds up to the snapshot", "[engine][log]") {
  SimRig rig("background_thread:false");
  const Streams streams(rig.allocator, 2);
  rig.allocator.recordMemoryEvents(true);
  Memory memory;
  std::size_t count = 0;
  const auto look = [&] {
    for (const MemoryEvent& event : rig.allocator.takeMemoryEvents()) {
      apply(event, memory);
      ++count;
    }
    CHECK(memory == memoryOf(rig.allocator.snapshot()));
  };
  churn(rig, streams, look);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  look();
  CHECK(memory.empty());
  CHECK(count > 0);
  if (onPages(rig.allocator)) CHECK(rig.allocator.memoryStats().pages.recycled > 0);
}

TEST_CASE("what is told of pages says which of it took a device call", "[engine][pages][log]") {
  SimRig rig("background_thread:false");
  const Streams streams(rig.allocator, 2);
  rig.allocator.recordMemoryEvents(true);
  std::uint64_t mapped = 0, unmapped = 0, revived = 0;
  const auto look = [&] {
    for (const MemoryEvent& event : rig.allocator.takeMemoryEvents()) {
      const bool maps = event.action == MemoryAction::kPageMap;
      if (event.stays_mapped)
        revived += maps ? 1 : 0;
      else
        ++(maps ? mapped : unmapped);
    }
  };
  churn(rig, streams, look);
  look();
  const PageCounts pages = rig.allocator.memoryStats().pages;
  CHECK(mapped == pages.created + pages.recycled);
  CHECK(unmapped == pages.returned);
  CHECK(revived == pages.revived);
  CHECK((revived > 0 && pages.recycled > 0 && pages.returned > 0));
}

TEST_CASE("a segment is told of as gone before another thread can have its address",
          "[engine][log]") {
  SimWork work;
  InterposedDevice device(work.device());
  CachingAllocator allocator(device, optionsOf("backing:segments"));
  allocator.recordMemoryEvents(true);
  Memory memory;
  const auto look = [&] {
    for (const MemoryEvent& event : allocator.takeMemoryEvents()) apply(event, memory);
  };
  allocator.free(allocator.allocate(30 * kMiB, Stream()));
  look();
  CHECK(!memory.empty());
  bool told = false;
  device.before = [&](Call call) {
    if (call != Call::kFree) return;
    look();
    told = memory.empty();
  };
  work.sim().faults().failNth(Call::kFree, 1);
  allocator.emptyCache();
  CHECK(told);
  look();
  CHECK(memory == memoryOf(allocator.snapshot()));  // the device has refused it: it is there
  CHECK(!memory.empty());
  told = false;
  allocator.emptyCache();
  CHECK(told);
  device.before = nullptr;
}

TEST_CASE("nothing is kept while nobody records", "[engine][log]") {
  SimRig rig;
  rig.allocator.free(rig.allocator.allocate(20 * kMiB));
  CHECK(rig.allocator.takeMemoryEvents().empty());
  rig.allocator.recordMemoryEvents(true);
  rig.allocator.free(rig.allocator.allocate(100 * kMiB));
  rig.allocator.recordMemoryEvents(false);
  CHECK(rig.allocator.takeMemoryEvents().empty());
}

TEST_CASE("what nobody takes is bounded, and the last is kept", "[engine][log][part]") {
  MemoryLog log;
  log.set(true);
  for (std::size_t i = 0; i < 5 * MemoryLog::kLeast; ++i)
    log.note({MemoryAction::kPageMap, Address(i), 1, {}, {}});
  const auto events = log.take();
  CHECK(events.size() >= MemoryLog::kLeast);
  CHECK(events.size() <= 2 * MemoryLog::kLeast);
  CHECK(events.back().address == 5 * MemoryLog::kLeast - 1);
  CHECK(log.take().empty());
}

}  // namespace cistern::test
