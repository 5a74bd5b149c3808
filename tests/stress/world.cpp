#include "tests/stress/world.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "tests/stress/watch.hpp"
#include "tests/support/threads.hpp"

namespace cistern::stress {
namespace {

sim::SimConfig deviceFor(std::uint64_t seed) {
  sim::SimConfig config;
  config.capacity = 8 * kGiB;
  config.gpu_lag_ns = seed % 2 == 0 ? 20'000 : 0;
  config.reuse_streams = seed % 3 != 0;
  return config;
}

Options optionsFor(std::uint64_t seed) {
  const char* const caches[] = {"2M", "2M", "64K", "256K", "off"};
  const char* const limits[] = {"6G", "256M", "96M"};
  return Options::parse(fmt::format("backing:{},thread_cache:{},limit:{}",
                                    seed / 7 % 3 == 0 ? "segments" : "pages", caches[seed % 5],
                                    limits[seed / 5 % 3]));
}

void mustBe(bool right, const char* what) {
  if (!right) violation(what);
}

}  // namespace

void violation(const std::string& what) {
  fmt::print(stderr, "violation: {}\n", what);
  std::fflush(nullptr);
  std::_Exit(1);
}

World::World(std::uint64_t seed, std::size_t streams, Counts& all)
    : device(deviceFor(seed)),
      allocator(mirror, optionsFor(seed)),
      pools(allocator),
      counts(all),
      slots(streams) {
  allocator.setMisuseHook([](const Misuse& misuse) { violation(misuse.text()); });
  if (seed % 4 < 2) hook_ = allocator.attachMemoryHook(mirror.hook());
  // The first slot has the default stream.
  for (std::size_t i = 1; i < slots.size(); ++i) {
    slots[i].stream = device.createStream().orThrow();
  }
}

World::~World() {
  doing("takes the world down: frees");
  for (auto& place : mail_) {
    if (Held* const held = place.load()) free(held);
  }
  doing("takes the world down: audits");
  allocator.audit();
  device.synchronizeDevice().orThrow();
  doing("takes the world down: empties the cache");
  allocator.emptyCache();
  if (hook_.number != 0) {
    doing("takes the world down: detaches the hook");
    const bool same = test::eventually([&] { return mirror.heard() == mirror.there(); });
    mustBe(same, "a hook has heard of other memory than there is");  // another thread may deliver
    allocator.detach(hook_);
    mustBe(mirror.wrong() == 0, "the device was called before a hook heard of it");
  }
  doing("takes the world down: compares");
  const MemoryStats stats = allocator.memoryStats();
  mustBe(stats[Stat::kAllocation].current == 0, "blocks are counted that nobody has");
  mustBe(stats[Stat::kRequestedBytes].current == 0, "bytes are counted that nobody asked for");
  mustBe(stats[Stat::kActive].current == 0, "blocks wait for work though all of it is complete");
  mustBe(stats[Stat::kReservedBytes].current == 0, "memory is left in an empty cache");
  mustBe(device.callsOnDeadStreams() == 0, "a call named a stream that was destroyed");
  device.audit();
  const std::vector<sim::RaceReport> races = device.races();
  if (!races.empty()) violation("race: " + races.front().text);
  counts.rounds += 1;
}

Held* World::allocate(std::size_t bytes, std::size_t slot, bool touch) {
  doing("waits for a stream");
  const std::shared_lock lock(slots[slot].mutex);
  doing("allocates");
  void* block = nullptr;
  try {
    block = allocator.allocate(bytes, slots[slot].stream);
  } catch (const OutOfMemory&) {
    counts.refused += 1;
    return nullptr;
  }
  auto held = std::make_unique<Held>(Held{block, bytes, slot, slots[slot].generation});
  if (!ownership_.claim(toAddress(block), bytes)) {
    violation(fmt::format("{:#x} of {} bytes was handed out twice", toAddress(block), bytes));
  }
  if (touch) work(slots[slot].stream, *held, sim::AccessKind::kWrite);
  return held.release();
}

void World::free(Held* held) {
  const std::unique_ptr<Held> own(held);
  doing("frees");
  mustBe(ownership_.release(toAddress(own->block), own->bytes), "a block has changed its owner");
  allocator.free(own->block);
}

void World::useElsewhere(const Held& held, std::size_t slot) {
  if (slot == held.slot) return;
  doing("uses a block elsewhere");
  const std::shared_lock first(slots[std::min(slot, held.slot)].mutex);
  const std::shared_lock second(slots[std::max(slot, held.slot)].mutex);
  if (slots[held.slot].generation != held.generation) return;
  const Event event = device.createEvent().orThrow();
  device.recordEvent(event, slots[held.slot].stream).orThrow();
  device.waitEvent(slots[slot].stream, event).orThrow();
  device.destroyEvent(event).orThrow();
  work(slots[slot].stream, held, sim::AccessKind::kRead);
  allocator.recordStream(held.block, slots[slot].stream);
  counts.recorded += 1;
}

void World::work(Stream stream, const Held& held, sim::AccessKind kind) {
  device.launch(stream, {"work", {{toAddress(held.block), held.bytes, kind}}, 3'000, nullptr})
      .orThrow();
}

void World::replaceStream(std::size_t slot) {
  if (slot == 0) return;
  const std::unique_lock lock(slots[slot].mutex, std::try_to_lock);
  if (!lock) return;
  doing("replaces a stream");
  allocator.forgetStream(slots[slot].stream);
  device.destroyStream(slots[slot].stream).orThrow();
  slots[slot].stream = device.createStream().orThrow();
  ++slots[slot].generation;
  counts.streams += 1;
}

void World::checkStatistics() {
  doing("checks statistics");
  const MemoryStats stats = allocator.memoryStats();
  for (std::size_t s = 0; s < kStatCount; ++s) {
    const StatValue& all = stats.all[s];
    const bool right = all.current >= 0 && all.freed >= 0 && all.peak >= all.current &&
                       all.allocated - all.freed == all.current &&
                       all.current == stats.small_pool[s].current + stats.large_pool[s].current;
    if (!right) violation(fmt::format("the statistics of {} disagree", statName(Stat(s))));
  }
  mustBe(stats[Stat::kActiveBytes].current >= stats[Stat::kAllocatedBytes].current &&
             stats[Stat::kReservedBytes].current >= stats[Stat::kActiveBytes].current,
         "more is in use than there is");
}

}  // namespace cistern::stress
