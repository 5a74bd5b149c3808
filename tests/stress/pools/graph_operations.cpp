// Captures begin, go on, end or are abandoned; graphs are replayed and reset.
#include <utility>

#include "tests/stress/pools/pool_work.hpp"
#include "tests/stress/pools/pool_worker.hpp"

namespace cistern::storm {
namespace {

constexpr std::size_t kMostGraphs = 12, kMostCaptures = 2;

// What is captured is run once without a capture, as programs do: its work is queued still when the
// capture begins. The sizes it took.
std::vector<std::uint64_t> runBefore(Worker& worker, std::size_t slot, const PoolRef& pool) {
  World& world = worker.world;
  std::vector<std::uint64_t> sizes;
  const Use users = Use::shared(pool->users), use = Use::shared(world.slots[slot].lock);
  if (!users || !use || !pool->user) return sizes;
  for (std::uint64_t i = 1 + worker.random.below(3); i > 0; --i) {
    const std::uint64_t bytes = worker.random.size();
    HeldRef held = world.take(pool, world.placeOf(slot), bytes, [&] {
      return pool->user->allocate(bytes, world.slots[slot].stream);
    });
    if (!held) break;
    sizes.push_back(bytes);
    if (worker.random.oneIn(2)) (void)touch(world, *held, worker.anySlot(), true, worker.random);
    (void)touch(world, *held, slot, true, worker.random);
    world.giveBack(std::move(held));
  }
  return sizes;
}

void begin(Worker& worker) {
  if (worker.sessions.size() >= kMostCaptures || worker.world.graphCount() >= kMostGraphs) return;
  World& world = worker.world;
  const std::size_t slot = 1 + worker.random.below(world.slots.size() - 1);
  PoolRef pool = worker.random.oneIn(3) ? nullptr : world.anyPool(worker.random);
  if (pool && pool->is_default) pool = nullptr;
  std::vector<std::uint64_t> sizes;
  if (pool && worker.random.oneIn(2)) sizes = runBefore(worker, slot, pool);
  if (auto session = Session::begin(world, slot, pool, worker.random)) {
    session->willTake(std::move(sizes));
    worker.sessions.push_back(std::move(session));
  }
}

void step(Worker& worker) {
  if (worker.sessions.empty()) return;
  Session& session = *worker.random.oneOf(worker.sessions);
  for (std::uint64_t i = worker.random.below(4) + 1; i > 0; --i) session.step(worker.random);
}

std::unique_ptr<Session> takeSession(Worker& worker) {
  if (worker.sessions.empty()) return nullptr;
  std::swap(worker.random.oneOf(worker.sessions), worker.sessions.back());
  auto session = std::move(worker.sessions.back());
  worker.sessions.pop_back();
  return session;
}

void end(Worker& worker) {
  if (const auto session = takeSession(worker)) session->end(worker.random);
}

void abandon(Worker& worker) {
  if (const auto session = takeSession(worker)) session->abandon(worker.random);
}

void replay(Worker& worker) {
  auto graph = worker.world.takeGraph(worker.random);
  if (!graph) return;
  graph->replay(worker.anySlot(), worker.random);
  worker.world.keepGraph(std::move(graph));
}

void reset(Worker& worker) {
  const auto graph = worker.world.takeGraph(worker.random);
  if (graph) note("  a graph of pool {}", graph->pools.front()->number);
}

// Without graphs, a pool's work need not be ordered by the program any more.
void unchain(Worker& worker) {
  const PoolRef pool = worker.world.anyPool(worker.random);
  const std::lock_guard lock(pool->chain.mutex);
  endChain(worker.world, pool->chain);
}

constexpr Operation kGraphOperations[] = {
    {"begin a capture", 25, begin},
    {"go on with a capture", 200, step},
    {"end a capture", 16, end},
    {"abandon a capture", 6, abandon},
    {"replay a graph", 50, replay},
    {"reset a graph", 14, reset},
    {"end the order in a pool", 30, unchain},
};

}  // namespace

std::span<const Operation> graphOperations() { return kGraphOperations; }

}  // namespace cistern::storm
