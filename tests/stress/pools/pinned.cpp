#include "tests/stress/pools/pinned.hpp"

#include <cstring>
#include <utility>

#include "tests/stress/pools/pool_work.hpp"
#include "tests/stress/pools/pool_worker.hpp"

namespace cistern::storm {

void Pinned::shelve(const PinnedHeld& held) {
  const std::lock_guard lock(mutex_);
  shelf_.push_back(held);
}

PinnedHeld Pinned::unshelve(std::uint64_t dice) {
  const std::lock_guard lock(mutex_);
  if (shelf_.empty()) return {};
  std::swap(shelf_[dice % shelf_.size()], shelf_.back());
  const PinnedHeld held = shelf_.back();
  shelf_.pop_back();
  return held;
}

void Pinned::finish() {
  note("  pinned memory is given back");
  for (const PinnedHeld& held : shelf_) all.free(held.block);
  shelf_.clear();
  all.emptyCache();  // a block whose event was refused gets another here
  all.device().synchronizeDevice().orThrow();
  all.emptyCache();
  all.audit();
  mustBe(all.stats().reserved_bytes.current == 0, "memory stays pinned");
}

namespace {

constexpr std::uint64_t kLeast = 16, kMostBlocks = 64;

std::byte* endOf(const PinnedHeld& held) {
  return static_cast<std::byte*>(held.block) + held.bytes - sizeof held.stamp;
}

void pin(Worker& worker) {
  World& world = worker.world;
  const std::int64_t blocks = world.pinned.all.stats().allocation.current;
  if (blocks >= std::int64_t(kMostBlocks)) return;
  PinnedHeld held;
  held.bytes = kLeast + worker.random.below(std::uint64_t{1} << worker.random.below(22));
  try {
    held.block = world.pinned.all.allocate(held.bytes);
  } catch (const OutOfPinnedMemory&) {
    return;
  }
  held.stamp = ++world.stamps;
  std::memcpy(held.block, &held.stamp, sizeof held.stamp);
  std::memcpy(endOf(held), &held.stamp, sizeof held.stamp);
  world.counts.pinned += 1;
  world.pinned.shelve(held);
}

sim::Work copyFrom(const PinnedHeld& held, std::uint64_t nanoseconds) {
  const auto effect = [held](sim::MemoryView&) {
    std::uint64_t first = 0, last = 0;
    std::memcpy(&first, held.block, sizeof first);
    std::memcpy(&last, endOf(held), sizeof last);
    mustBe(first == held.stamp && last == held.stamp, "pinned memory was reused too early");
  };
  return {"copy", {}, nanoseconds, effect};
}

void unpin(Worker& worker) {
  const PinnedHeld held = worker.world.pinned.unshelve(worker.random.next());
  worker.world.pinned.all.free(held.block);
}

// Freed while the copy is queued, at times.
void copyPinned(Worker& worker) {
  World& world = worker.world;
  const PinnedHeld held = world.pinned.unshelve(worker.random.next());
  if (held.block == nullptr) return;
  Slot& slot = world.slots[worker.anySlot()];
  if (const Use use = Use::shared(slot.lock)) {
    insistVerb([&] { world.pinned.all.recordStream(held.block, slot.stream); });
    mustWork(world.device.launch(slot.stream, copyFrom(held, someTime(worker.random))));
    if (worker.random.oneIn(2)) return world.pinned.all.free(held.block);
  }
  world.pinned.shelve(held);
}

void emptyPinned(Worker& worker) { worker.world.pinned.all.emptyCache(); }

constexpr Operation kPinnedOperations[] = {
    {"pin memory", 30, pin},
    {"copy from pinned memory", 40, copyPinned},
    {"free pinned memory", 12, unpin},
    {"empty the pinned cache", 2, emptyPinned},
};

}  // namespace

std::span<const Operation> pinnedOperations() { return kPinnedOperations; }

}  // namespace cistern::storm
