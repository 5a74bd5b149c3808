// The limit of a pool: Pools::setLimit. No count of its blocks is kept, because each free would pay
// for it. A request in a pool that has a limit asks the pool's heaps instead.
#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/engine/paths/slow_path.hpp"

namespace cistern::slow_path {
namespace {

bool hasRoom(const Pool& pool, std::uint64_t bytes) {
  const std::uint64_t limit = pool.limit, busy = pool.busyBytes();
  return busy <= limit && bytes <= limit - busy;
}

// Whether a block of the pool waits for queued work. Looks at each.
bool waitsForWork(const Pool& pool) {
  bool any = false;
  pool.forEachHeap([&](Heap& heap) {
    const MutexLock lock(heap.mutex());
    forEachBlock(heap, [&](const Block& block) { any |= block.state() == BlockState::kPending; });
  });
  return any;
}

// Whether room has come of queued work that has ended. It may be other pools' work that is waited
// for, since streams are waited for one after another.
bool waitForRoom(Engine& engine, const Pool& pool, std::uint64_t bytes) {
  const MutexLock lock(engine.pressure_mutex);
  while (!hasRoom(pool, bytes)) {
    if (engine.pending.waiting() == 0 || !waitsForWork(pool)) return false;
    engine.waits.fetch_add(1, std::memory_order_relaxed);
    if (!engine.pending.wait()) return hasRoom(pool, bytes);
  }
  return true;
}

// Whether the program has freed something. A callback that says so although nothing has changed
// would be called for ever.
bool askProgram(Engine& engine, const Request& request, std::uint32_t attempt) {
  const auto freed = [&] { return engine.totals.read()[Stat::kAllocation].freed; };
  const std::int64_t before = freed();
  if (!engine.hooks.reclaim.any() || !engine.hooks.reclaim(shortageOf(engine, request, attempt)))
    return false;
  engine.made.requireHere("allocate");  // a callback may have forked
  flushCaches(engine);
  return freed() != before;
}

}  // namespace

// A pool that sleeps refuses by itself.
void requireRoomWithin(Engine& engine, const Request& request) {
  const Pool& pool = *request.pool;
  const std::uint64_t bytes = request.rounded();
  const bool waits = request.capture == nullptr && bytes <= pool.limit;
  for (std::uint32_t attempt = 1; !hasRoom(pool, bytes) && !pool.asleep; ++attempt) {
    (void)engine.pending.poll();
    if (hasRoom(pool, bytes) || (waits && waitForRoom(engine, pool, bytes))) return;
    if (!askProgram(engine, request, attempt)) throwOutOfMemory(engine, request);
  }
}

Block& keptWithin(Engine& engine, const Request& request, Block& block) {
  const std::uint64_t limit = request.pool->limit, surplus = block.bytes() - request.rounded();
  if (request.pool->busyBytes() - surplus <= limit) return block;
  freeAt(engine, deviceAddress(block), nullptr);
  throwOutOfMemory(engine, request);
}

}  // namespace cistern::slow_path
