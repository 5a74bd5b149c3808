// The steps of a miss that make the host wait, and those that give back what that has made free.
#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/giving_back/giving_back.hpp"
#include "allocator/engine/paths/fallback_steps.hpp"

namespace cistern::slow_path {

static constexpr Step kWhatThereIsNow[] = {moreMemory, afterMakingRoom};

// If `wait()` finds nothing to wait for, other threads have released the blocks by then. This
// thread then searches once more. If no block waits before a round, the step ends.
Block* afterPending(Engine& engine, Heap& heap, const Request& request) {
  const MutexLock lock(engine.waiting_mutex);
  while (engine.pending.waiting() > 0) {
    engine.waits.fetch_add(1, std::memory_order_relaxed);
    if (!engine.pending.wait()) return search(engine, heap, request);  // others have released it
    if (Block* block = search(engine, heap, request)) return block;
    if (request.pool->onPages()) {
      if (Block* block = moreMemory(engine, heap, request)) return block;
    }
    if (Block* block = afterMakingRoom(engine, heap, request)) return block;
  }
  return nullptr;
}

Block* afterResetGraphs(Engine& engine, Heap& heap, const Request& request) {
  const auto wait = [&engine] {
    const MutexLock lock(engine.waiting_mutex);
    return engine.hooks.tidy(Tidying::kLastResort);
  };
  while (wait()) {
    // Without the lock now: this calls observers of released pools, which may free more.
    (void)engine.hooks.tidy(Tidying::kMiss);
    if (Block* block = firstOf(kWhatThereIsNow, engine, heap, request)) return block;
  }
  return nullptr;
}

// A stream that was destroyed cannot be asked. Its work is complete when the whole device is idle.
Block* afterTheDevice(Engine& engine, Heap& heap, const Request& request) {
  const MutexLock lock(engine.waiting_mutex);
  engine.waits.fetch_add(1, std::memory_order_relaxed);
  if (!engine.progress.completeAll(engine.heaps.all())) return nullptr;
  engine.imports->retry();
  return firstOf(kWhatThereIsNow, engine, heap, request);
}

// Free memory may be of a size, or at a place, that serves nobody.
static Block* afterGivingBack(Engine& engine, Heap& heap, const Request& request, Givers givers) {
  const MutexLock lock(engine.waiting_mutex);
  if (!giveBackFor(engine, request, givers)) return nullptr;
  return firstOf(kWhatThereIsNow, engine, heap, request);
}

Block* afterGivingAllBack(Engine& engine, Heap& heap, const Request& request) {
  return afterGivingBack(engine, heap, request, Givers::kUnowned);
}

Block* afterGivingLivePoolsBack(Engine& engine, Heap& heap, const Request& request) {
  return afterGivingBack(engine, heap, request, Givers::kAll);
}

}  // namespace cistern::slow_path
