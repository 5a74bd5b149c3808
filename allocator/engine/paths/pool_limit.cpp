// The limit of a pool: Pools::setLimit. No count of its blocks is kept, because each free would pay
// for it. A request in a pool that has a limit asks the pool's heaps instead.
#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/engine/paths/slow_path.hpp"

namespace cistern::slow_path {
namespace {

bool hasRoom(const Pool& pool, std::uint64_t bytes) {
  const std::uint64_t limit = pool.limit, busy = pool.busyBytes();
  return busy <= limit && bytes <= limit - busy;
}

// Whether room has come of queued work that has ended.
bool waitForRoom(Engine& engine, const Pool& pool, std::uint64_t bytes) {
  engine.pending.poll();
  const MutexLock lock(engine.pressure_mutex);
  while (!hasRoom(pool, bytes)) {
    if (engine.pending.waiting() == 0) return false;
    engine.waits.fetch_add(1, std::memory_order_relaxed);
    if (!engine.pending.wait()) return hasRoom(pool, bytes);
  }
  return true;
}

// A callback that says that it has freed something, though the pool has as much as before, ends it.
bool askForRoom(Engine& engine, const Request& request) {
  const Pool& pool = *request.pool;
  for (std::uint32_t attempt = 1; engine.hooks.reclaim.any(); ++attempt) {
    const std::uint64_t before = pool.busyBytes();
    if (!engine.hooks.reclaim(shortageOf(engine, request, attempt))) return false;
    engine.made.requireHere("allocate");  // a callback may have forked
    engine.pending.poll();
    if (hasRoom(pool, request.rounded())) return true;
    if (pool.busyBytes() >= before) return false;
  }
  return false;
}

}  // namespace

void requireRoomWithin(Engine& engine, const Request& request) {
  const std::uint64_t bytes = request.rounded();
  if (hasRoom(*request.pool, bytes)) return;
  const bool waits = request.capture == nullptr && bytes <= request.pool->limit;
  if (waits && waitForRoom(engine, *request.pool, bytes)) return;
  if (!askForRoom(engine, request)) throwOutOfMemory(engine, request);
}

void* keptWithin(Engine& engine, const Request& request, void* pointer) {
  if (hasRoom(*request.pool, 0)) return pointer;
  freeAt(engine, toAddress(pointer), nullptr);
  throwOutOfMemory(engine, request);
}

}  // namespace cistern::slow_path
