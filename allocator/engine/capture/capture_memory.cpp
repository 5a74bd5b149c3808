#include "allocator/engine/capture/capture_memory.hpp"

#include <mutex>
#include <utility>

#include "allocator/engine/fallbacks.hpp"
#include "allocator/engine/giving_back.hpp"
#include "allocator/engine/reports/reports.hpp"
#include "allocator/engine/slow_path.hpp"
#include "allocator/engine/streams/cross_stream.hpp"

namespace cistern::captures {

Block& allocate(Engine& engine, const Request& request) {
  if (request.rounded() > engine.device_total) throwOutOfMemory(engine, request);
  Heap& heap = slow_path::heapFor(engine, request);
  {
    const MutexLock lock(heap.mutex());
    if (Block* const block = heap.allocate(request)) return *block;
  }
  return fallbacks::serve(engine, heap, request);
}

void pin(Recording& recording, const Block& block) {
  const MutexLock lock(recording.mutex());
  if (recording.over()) return;  // the graph is made without it
  heapOf(block).backing().pin(block, recording.number(), recording.pins);
}

// What was not allocated in the capture has been used by work that is queued, not recorded: it is
// free when that is complete, and until then it must not lie beside what the capture frees. A wrong
// free is told without a lock.
bool free(Engine& engine, Heap& heap, const HeapSegment& segment, Address address,
          const void* caller, std::uint32_t recorded) noexcept {
  using How = Recording::Freed::How;
  Recording::Freed freed{How::kOver, nullptr, {}};
  if (const std::shared_ptr<Recording> recording = heap.pool().recording())
    freed = recording->free(heap, segment, address, caller);
  if (freed.how == How::kNotHeld) reportMisuse(engine, "free", address);
  if (freed.how == How::kFromBefore) deferFree(engine, *freed.block, freed.users, true);
  if (freed.how != How::kOver) return true;
  const MutexLock lock(heap.mutex());
  (void)heap.completion().endRecording(recorded);
  return false;
}

// ---- Beginning and ending -----------------------------------------------------------------------

// Free memory that queued work may still use waits, as if it were freed only now. A miss that takes
// such memory from elsewhere has it in the heap by now, or is told not to.
static void begin(Engine& engine, Heap& heap, std::uint32_t number) {
  std::vector<Block*> blocks;
  {
    const std::unique_lock still = heap.backing().holdStill();
    const MutexLock lock(heap.mutex());
    heap.completion().beginRecording(number, heap.endedEpoch());
    blocks = incompleteBlocks(heap);
    for (Block* block : blocks) heap.setAside(*block);
  }
  for (Block* block : blocks) deferFree(engine, *block, {heap.stream()});
}

// While a capture into a pool is under way, what lies free in the pool is complete, or was freed by
// the capture. So a stream that joins later may take it, and it does no harm that the two coalesce.
// What comes back into the pool meanwhile is held to that too: see putBack in cross_stream.cpp.
// Pages go home first: what captures have in common then needs the same windows, which are mapped.
void begin(Engine& engine, std::shared_ptr<Recording> recording, Stream origin) {
  Pool& pool = recording->pool();
  const std::uint32_t number = recording->number();
  flushCaches(engine);
  for (Heap* heap : engine.heaps.all()) {  // while it can be asked: a captured stream does not tell
    if (!heap->pool().givesTo(pool, false)) continue;
    heap->stream() == origin ? engine.progress.refresh(*heap)
                             : engine.progress.refreshByEvent(*heap);
  }
  pool.setRecording(std::move(recording));
  try {
    for (Heap* heap : pool.heaps()) {
      begin(engine, *heap, number);
      if (heap->onPages()) atLowWater(engine, *heap);
    }
  } catch (...) {
    pool.forEachHeap([&](Heap& heap) {
      const MutexLock lock(heap.mutex());
      (void)heap.completion().endRecording(number);
    });
    pool.setRecording(nullptr);
    throw;
  }
  engine.progress.captureBegins();
}

// If work still uses a mapping that a page has left, only the free blocks are marked complete, not
// the epochs.
static void end(Heap& heap, std::uint32_t number) noexcept {
  const std::unique_lock still = heap.backing().holdStill();
  const MutexLock lock(heap.mutex());
  Completion& known = heap.completion();
  if (!known.endRecording(number)) return;  // a stream has come in at this moment, with nothing
  const bool left_behind = heap.backing().leftInUse(heap, known.beforeRecording());
  left_behind ? noteFreeComplete(heap) : known.noteComplete(heap.endedEpoch());
}

// Under the recording's lock the capture ends for all heaps: a free comes before or after, never
// halfway. What the capture recorded has not run, so nothing waits for it. But what else was queued
// on streams that it did not record may have used a block.
Pins end(Engine& engine, Recording& recording) noexcept {
  engine.progress.captureEnds();
  Pool& pool = recording.pool();
  Pins pins;
  Recording::Left left;
  {
    const MutexLock lock(recording.mutex());
    left = recording.finish();
    pins = std::exchange(recording.pins, {});
    pool.forEachHeap([&](Heap& heap) { end(heap, recording.number()); });
  }
  pool.setRecording(nullptr);
  while (Block* block = left.free.pop()) putBack(engine, {block});
  for (const auto& [block, streams] : left.outside) deferFree(engine, *block, streams);
  while (Block* block = left.unknown.pop()) engine.pending.addUnknown(*block);
  return pins;
}

}  // namespace cistern::captures
