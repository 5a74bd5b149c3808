// What must hold in a storm of sleep, and at its end.
#include <map>
#include <set>

#include "tests/faults/sleep_storm.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

// The snapshot has each block of the program's, awake or asleep.
void SleepStorm::checkSnapshot() {
  std::map<Address, SnapshotBlock> shown;
  std::uint64_t device = 0, host = 0;
  for (const SnapshotSegment& segment : allocator_.snapshot().segments) {
    for (const SnapshotBlock& block : segment.blocks) {
      shown[block.address] = block;
      device += block.bytes - block.away - block.on_host;
      host += block.on_host;
    }
  }
  if (!background_) {  // what the device would not take back is in no segment
    const MemoryStats stats = allocator_.memoryStats();
    CHECK(device <= std::uint64_t(stats[Stat::kReservedBytes].current));
    CHECK(host <= stats.host_page_bytes);
  }
  for (Place& place : places_) {
    const bool asleep = sleeps(place);
    for (const Block& block : place.blocks) {
      const auto found = shown.find(toAddress(block.at));
      REQUIRE(found != shown.end());
      CHECK(found->second.requested == block.bytes);
      const bool away = found->second.use == BlockUse::kAsleep;  // not where its page has stayed
      CHECK((found->second.use == BlockUse::kAllocated || (away && asleep)));
    }
  }
}

void SleepStorm::checkLocations() {
  const OverflowReport report = allocator_.overflow();
  CHECK(report.reserved <= host_pages_ - device_.sim().hostPageBytesLeft());
  std::set<const void*> on_host;
  for (const OverflowBlock& block : report.blocks) on_host.insert(block.address);
  for (const Place& place : places_) {
    if (sleeps(place)) continue;
    for (const Block& block : place.blocks) {
      const bool host = allocator_.locationOf(block.at) == Location::kHost;
      CHECK(host == (place.isHost() || on_host.contains(block.at)));
      counts["on the host"] += host && !place.isHost() ? 1 : 0;
    }
  }
}

void SleepStorm::checkAll() {
  for (Place& place : places_) {
    if (sleeps(place)) continue;
    for (const Block& block : place.blocks) {
      if (block.seed && place.captured.empty()) check(place.s, block.at, block.bytes, *block.seed);
    }
  }
  for (const Block& hog : hogs_) check(s_, hog.at, hog.bytes, *hog.seed);
  checkSnapshot();
  if (overflow_) checkLocations();
  toggleHistory();
  device_.synchronizeDevice().orThrow();
  REQUIRE(wrong_ == 0);
  REQUIRE(device_.sim().races().empty());
  allocator_.audit();
  device_.sim().audit();
}

void SleepStorm::clear(Place& place) {
  while (!place.captured.empty()) reset(place);
  while (!place.blocks.empty()) freeAt(place, place.blocks.begin());
  place.exported = nullptr;
  place.user = nullptr;
}

void SleepStorm::finish() {
  while (!hogs_.empty()) freeHog();
  for (Place& place : places_) {
    if (overflow_ && !sleeps(place)) clear(place);  // the device has no room for all at once
  }
  for (Place& place : places_) {
    if (!sleeps(place)) continue;
    (void)pools_.wake({place.id});
    noteWoken(place);
    if (overflow_) clear(place);
  }
  checkAll();
  for (Place& place : places_) clear(place);
  device_.synchronizeDevice().orThrow();
  pools_.trimHostMemory();
  allocator_.emptyCache();
  checkAll();
  const MemoryInfo info = device_.memoryInfo().orThrow();
  CHECK(info.free_bytes == info.total_bytes);
  CHECK(device_.sim().pinnableBytes() == kPinned);
  CHECK(device_.sim().hostPageBytesLeft() == host_pages_);
}

}  // namespace cistern::test
