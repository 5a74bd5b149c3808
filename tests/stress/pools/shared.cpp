#include "tests/stress/pools/shared.hpp"

#include <utility>

#include "tests/stress/pools/host_failures.hpp"
#include "tests/stress/pools/pool_work.hpp"
#include "tests/stress/pools/pool_worker.hpp"

namespace cistern::storm {

void Shared::shelve(SharedHeld item) {
  const std::lock_guard lock(mutex_);
  shelf_.push_back(std::move(item));
}

SharedHeld Shared::unshelve(std::uint64_t dice) {
  const std::lock_guard lock(mutex_);
  if (shelf_.empty()) return {};
  std::swap(shelf_[dice % shelf_.size()], shelf_.back());
  SharedHeld item = std::move(shelf_.back());
  shelf_.pop_back();
  return item;
}

bool Shared::full() {
  const std::lock_guard lock(mutex_);
  return shelf_.size() >= kMost;
}

void Shared::noteGone(Address copy, bool elsewhere) {
  const std::lock_guard lock(mutex_);
  gone_.emplace_back(copy, elsewhere);
}

namespace {

constexpr std::uint64_t kMostShared = 16 * kMiB;

void freeHeld(World& world, SharedHeld& item) {
  if (!item.held) return;
  const PoolRef pool = item.held->pool;
  world.giveBack(std::move(item.held));
  pool->outside -= 1;
}

void dropImport(World& world, SharedHeld& item) {
  if (!item.import) return;
  note("  the import at {:#x} goes", item.copy);
  item.import = nullptr;
  world.sharing.noteGone(item.copy, item.elsewhere);
}

// Of the same pages, at other addresses. Null when a planned fault met it.
void import(World& world, SharedHeld& item) {
  CachingAllocator& by = item.elsewhere ? world.sharing.there : world.allocator;
  try {
    item.import = by.openImport(item.exported->pages);
  } catch (const DeviceFailure& failure) {
    return world.expected(failure, "openImport");
  } catch (const std::bad_alloc&) {
    return;
  }
  item.copy = toAddress(item.import.get()) + item.exported->offset;
  note("  {:#x} lies at {:#x} too{}", toAddress(item.held->block), item.copy,
       item.elsewhere ? ", elsewhere" : "");
  world.counts.imports += 1;
}

// A block in pages has pages in its export; another has none, and is only held.
void share(Worker& worker) {
  World& world = worker.world;
  if (world.sharing.full()) return;
  const PoolRef pool = world.openPool(worker.random);
  const Use use = Use::shared(pool->users);
  HeldRef held = use ? world.unshelve(*pool, worker.random) : nullptr;
  if (!held) return;
  const bool host = world.allocator.locationOf(held->block) == Location::kHost;  // without a handle
  if (!held->apart || held->bytes > kMostShared || host) return world.shelve(std::move(held));
  pool->outside += 1;
  SharedHeld item{std::move(held), nullptr, nullptr, 0, worker.random.oneIn(3)};
  try {
    const HostFailures some(world.config.host_fails && worker.random.oneIn(4),
                            world.counts.host_failures);
    item.exported = world.allocator.exportBlock(item.held->block);
  } catch (const DeviceFailure& failure) {
    world.expected(failure, "exportBlock");
  } catch (const std::bad_alloc&) {
  }
  if (item.exported && !item.exported->pages.empty()) import(world, item);
  world.sharing.shelve(std::move(item));
}

// The import of the same device is read in the order of the block's own stream; another process
// reads when the host has waited.
void readCopy(World& world, const SharedHeld& item, Stream stream, std::uint64_t nanoseconds) {
  Held copy;
  copy.block = toPointer(item.copy);
  copy.bytes = item.held ? item.held->bytes : sizeof copy.stamp;
  const std::uint64_t expected = item.held ? item.held->stamp : 0;
  sim::Work work = workOn(copy, expected, 0, nanoseconds);
  if (!item.elsewhere) return mustWork(world.device.launch(stream, std::move(work)));
  if (item.held) {
    const RelaxedCaptureMode relaxed(world.device);
    mustWork(insist([&] { return world.device.synchronizeStream(stream); }));
  }
  mustWork(world.sharing.other.sim().launch(Stream{}, std::move(work)));
  mustWork(world.sharing.other.synchronizeDevice());
}

// Memory of a freed block may be anybody's by now, but it is there.
void useShared(Worker& worker) {
  World& world = worker.world;
  SharedHeld item = world.sharing.unshelve(worker.random.next());
  if (item.empty()) return;
  const std::size_t index = item.held ? item.held->home.slot : 0;
  Slot& slot = world.slots[index];
  const Use use = Use::shared(slot.lock);
  const bool alive = use && (!item.held || world.placeOf(index) == item.held->home);
  if (alive && item.held) {
    const bool writes = item.held->stamp == 0 || worker.random.oneIn(2);
    if (touch(world, *item.held, index, writes, worker.random) && item.import) {
      readCopy(world, item, slot.stream, someTime(worker.random));
      touchedBy(*item.held, item.held->home, false);
      world.counts.shared_reads += 1;
    }
  } else if (alive && item.import) {
    readCopy(world, item, slot.stream, someTime(worker.random));
  }
  world.sharing.shelve(std::move(item));
}

// In any order, also while captures are under way.
void unshare(Worker& worker) {
  World& world = worker.world;
  SharedHeld item = world.sharing.unshelve(worker.random.next());
  if (item.empty()) return;
  const std::uint64_t dice = worker.random.below(3);
  if (dice == 0) freeHeld(world, item);
  if (dice == 1) item.exported = nullptr;
  if (dice == 2) dropImport(world, item);
  if (!item.empty()) world.sharing.shelve(std::move(item));
}

constexpr Operation kSharedOperations[] = {
    {"export and import a block", 12, share},
    {"use a shared block", 40, useShared},
    {"end a part of a sharing", 24, unshare},
};

}  // namespace

std::span<const Operation> sharedOperations() { return kSharedOperations; }

void Shared::finish(World& world) {
  note("  what is shared is given back");
  for (SharedHeld item = unshelve(0); !item.empty(); item = unshelve(0)) {
    freeHeld(world, item);
    item.exported = nullptr;
    dropImport(world, item);
  }
  there.emptyCache();
  other.sim().audit();
}

// The device calls an access to what is not mapped illegal.
void Shared::checkGone(World& world) {
  for (const auto& [copy, elsewhere] : gone_) {
    sim::SimDevice& device = elsewhere ? other.sim() : world.device;
    (void)device.launch(Stream{}, {"look", {{copy, 1, sim::AccessKind::kRead}}, 0, nullptr});
    if (device.races().empty())
      violation(fmt::format("{:#x} is mapped, though its import has gone", copy));
    device.clearRaces();
  }
}

}  // namespace cistern::storm
