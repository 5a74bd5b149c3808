#include "tests/stress/pools/pool_world.hpp"

#include <stdexcept>
#include <utility>

#include "tests/stress/pools/captured_graph.hpp"
#include "tests/stress/pools/host_failures.hpp"

namespace cistern::storm {

World::World(std::uint64_t seed, std::size_t threads, Counts& all)
    : config(seed, threads),
      counts(all),
      quiet(config.device),
      device(quiet.sim()),
      slots(config.streams),
      allocator(quiet, config.options),
      pools(std::make_unique<Pools>(allocator)),
      hooks_random_(seed + 1) {
  for (std::size_t i = 1; i < slots.size(); ++i) {
    slots[i].stream = device.createStream().orThrow();
  }
  open_.push_back(makePool({}));
  open_.front()->is_default = true;
  Random random(seed + 2);
  open_.resize(kOpenPools);
  for (std::size_t i = 1; i < kOpenPools; ++i) (void)renewPool(i, random);
  attachHooks();
}

World::~World() = default;

// ---- Blocks ------------------------------------------------------------------------------------

HeldRef World::take(const PoolRef& pool, Place home, std::uint64_t bytes,
                    const std::function<void*()>& allocate) {
  auto held = std::make_unique<Held>();
  counts.allocations += 1;
  try {
    const HostFailures some(config.host_fails && (stamps.load() & 7) == 0, counts.host_failures);
    held->block = allocate();
  } catch (const std::bad_alloc&) {
    note("  no host memory for {} bytes", bytes);
    return nullptr;
  } catch (const OutOfMemory&) {
    counts.refused += 1;
    note("  refused {} bytes", bytes);
    return nullptr;
  } catch (const DeviceFailure& failure) {
    expected(failure, "allocate");
    return nullptr;
  } catch (const std::runtime_error& error) {
    if (!config.sources_throw || std::string(error.what()) != "a source threw") throw;
    return nullptr;
  }
  held->bytes = bytes;
  held->pool = pool;
  held->home = held->writer = home;
  enter(*held);
  held->apart = !pool->chain.on;  // asked after the request: docs say from when on graphs share
  note("  {:#x} of {} bytes, pool {}, slot {}.{}", toAddress(held->block), bytes, pool->number,
       home.slot, home.generation);
  return held;
}

void World::enter(Held& held) {
  const Address address = toAddress(held.block);
  if (!oracle.ownership.claim(address, held.bytes)) {
    violation(fmt::format("{:#x} of {} bytes was handed out twice", address, held.bytes));
  }
  const Location location = allocator.locationOf(held.block);
  // A capture makes a pool that has gone anew, and then in the device's memory.
  const bool overflows = config.options.overflow != 0 && held.pool->location == Location::kDevice;
  if (held.pool->used && location != held.pool->location && !overflows)
    violation(fmt::format("{:#x} of pool {} lies in the wrong memory", address, held.pool->number));
  if (location == Location::kHost) counts.in_host += 1;
  oracle.captured.check(address, held.bytes, held.pool->number);
  held.pool->blocks += 1;
  held.pool->bytes += std::int64_t(held.bytes);
  blocks_ += 1;
  bytes_ += std::int64_t(held.bytes);
}

void World::leave(const Held& held) {
  mustBe(oracle.ownership.release(toAddress(held.block), held.bytes),
         "a block has changed its owner");
  held.pool->blocks -= 1;
  held.pool->bytes -= std::int64_t(held.bytes);
  blocks_ -= 1;
  bytes_ -= std::int64_t(held.bytes);
}

void World::giveBack(HeldRef held) {
  note("  free {:#x}", toAddress(held->block));
  leave(*held);
  held->untold.empty() ? allocator.free(held->block) : freeUntold(*held);
}

// The order comes as late as it may: after the free, if nobody else can use the stream meanwhile.
// If a capture has the stream, the host waits instead.
void World::freeUntold(Held& held) {
  Slot& home = slots[held.home.slot];
  const Use alone = Use::alone(home.lock), shared = alone ? Use() : Use::shared(home.lock);
  if (alone) allocator.free(held.block);
  followUntold(held, alone || shared);
  if (!alone) allocator.free(held.block);
}

void World::followUntold(Held& held) {
  if (held.untold.empty()) return;
  const Use shared = Use::shared(slots[held.home.slot].lock);
  followUntold(held, bool(shared));
}

void World::followUntold(Held& held, bool on_device) {
  Slot& home = slots[held.home.slot];
  for (const Event used : std::exchange(held.untold, {})) {
    const RelaxedCaptureMode relaxed(device);
    mustWork(insist([&] {
      return on_device ? device.waitEvent(home.stream, used) : device.synchronizeEvent(used);
    }));
    (void)insist([&] { return device.destroyEvent(used); });
  }
  --home.untold;
}

void World::shelve(HeldRef held) {
  PoolModel& pool = *held->pool;
  const std::lock_guard lock(pool.shelf_mutex);
  pool.shelf.push_back(std::move(held));
}

HeldRef World::unshelve(PoolModel& pool, Random& random) {
  const std::lock_guard lock(pool.shelf_mutex);
  if (pool.shelf.empty()) return nullptr;
  std::swap(random.oneOf(pool.shelf), pool.shelf.back());
  HeldRef held = std::move(pool.shelf.back());
  pool.shelf.pop_back();
  return held;
}

// ---- Graphs ------------------------------------------------------------------------------------

void World::keepGraph(std::unique_ptr<CapturedGraph> graph) {
  const std::lock_guard lock(graphs_mutex_);
  graphs_.push_back(std::move(graph));
}

std::unique_ptr<CapturedGraph> World::takeGraph(Random& random) {
  const std::lock_guard lock(graphs_mutex_);
  if (graphs_.empty()) return nullptr;
  std::swap(random.oneOf(graphs_), graphs_.back());
  auto graph = std::move(graphs_.back());
  graphs_.pop_back();
  return graph;
}

std::size_t World::graphCount() {
  const std::lock_guard lock(graphs_mutex_);
  return graphs_.size();
}

// ---- Looking -----------------------------------------------------------------------------------

void World::expected(const DeviceFailure& failure, const char* verb) const {
  note("  {}: {}", verb, failure.what());
  if (config.faults && isPlanned(failure.error())) return;
  violation(fmt::format("{}: {}", verb, failure.what()));
}

void World::checkStatistics() {
  const MemoryStats stats = allocator.memoryStats();
  const auto compare = [](const char* what, std::int64_t says, std::int64_t is) {
    if (says != is)
      violation(fmt::format("the statistics say {} {}, there are {}", says, what, is));
  };
  compare("blocks", stats[Stat::kAllocation].current, blocks_);
  compare("bytes asked for", stats[Stat::kRequestedBytes].current, bytes_);
  mustBe(stats[Stat::kActiveBytes].current >= stats[Stat::kAllocatedBytes].current &&
             stats[Stat::kReservedBytes].current + std::int64_t(stats.host_page_bytes) >=
                 stats[Stat::kActiveBytes].current,
         "more is in use than there is");
}

void World::checkRaces() {
  const std::vector<sim::RaceReport> races = device.races();
  if (!races.empty()) violation("race: " + races.front().text);
  mustBe(device.callsOnDeadStreams() == 0, "a call named a stream that was destroyed");
}

}  // namespace cistern::storm
