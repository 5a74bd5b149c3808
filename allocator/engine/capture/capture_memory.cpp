#include "allocator/engine/capture/capture_memory.hpp"

#include <mutex>
#include <utility>

namespace cistern {
namespace {

Heap& heapOf(const Block& block) { return *segmentOf(block).heap.load(std::memory_order_acquire); }

}  // namespace

Block& CaptureMemory::allocate(const Request& request) {
  if (request.rounded() > core_.device_total) fallbacks_.throwOutOfMemory(request);
  Heap& heap = stream_heaps_.of(request);
  {
    const MutexLock lock(heap.mutex());
    if (Block* const block = heap.allocate(request)) return *block;
  }
  return fallbacks_.serve(heap, request);
}

void CaptureMemory::pin(Recording& recording, const Block& block) {
  const MutexLock lock(recording.mutex());
  if (recording.over()) return;  // the graph is made without it
  heapOf(block).backing().pin(block, recording.number(), recording.pins);
}

// What was not allocated in the capture has been used by work that is queued, not recorded: it is
// free when that is complete, and until then it must not lie beside what the capture frees. A wrong
// free is told without a lock.
bool CaptureMemory::free(Heap& heap, const HeapSegment& segment, Address address,
                         const void* caller, std::uint32_t recorded) noexcept {
  using How = Recording::Freed::How;
  Recording::Freed freed{How::kOver, nullptr, {}};
  if (const std::shared_ptr<Recording> recording = heap.pool().recording())
    freed = recording->free(heap, segment, address, caller);
  if (freed.how == How::kNotHeld) core_.reports.misuse("free", address);
  if (freed.how == How::kFromBefore) cross_stream_.deferFree(heap, *freed.block, freed.users, true);
  if (freed.how != How::kOver) return true;
  const MutexLock lock(heap.mutex());
  (void)heap.completion().endRecording(recorded);
  return false;
}

// ---- Beginning and ending ----------------------------------------------------------------------

// While a capture into a pool is under way, what lies free in the pool is complete, or was freed by
// the capture. So a stream that joins later may take it, and it does no harm that the two coalesce.
// What comes back into the pool meanwhile is held to that too: see CrossStream::putBack.
// Pages go home first: what captures have in common then needs the same windows, which are mapped.
void CaptureMemory::begin(std::shared_ptr<Recording> recording, Stream origin) {
  Pool& pool = recording->pool();
  const std::uint32_t number = recording->number();
  recording->attach(core_.tick, core_.options.reusesAcrossStreams());
  flusher_.flush();
  for (Heap* heap : core_.heaps.all()) {  // while it can be asked: a captured stream does not tell
    if (!heap->pool().givesTo(pool, false)) continue;
    heap->stream() == origin ? core_.progress.refresh(*heap) : core_.progress.refreshByEvent(*heap);
  }
  pool.setRecording(std::move(recording));
  try {
    for (Heap* heap : pool.heaps()) {
      begin(*heap, number);
      if (heap->onPages()) flusher_.atLowWater(*heap);
    }
  } catch (...) {
    pool.forEachHeap([&](Heap& heap) {
      const MutexLock lock(heap.mutex());
      (void)heap.completion().endRecording(number);
    });
    pool.setRecording(nullptr);
    throw;
  }
  core_.progress.captureBegins();
}

// Free memory that queued work may still use waits, as if it were freed only now. A miss that takes
// such memory from elsewhere has it in the heap by now, or is told not to.
void CaptureMemory::begin(Heap& heap, std::uint32_t number) {
  std::vector<Block*> blocks;
  {
    const std::unique_lock still = heap.backing().holdStill();
    const MutexLock lock(heap.mutex());
    heap.completion().beginRecording(number, heap.endedEpoch());
    blocks = incompleteBlocks(heap);
    for (Block* block : blocks) heap.setAside(*block);
  }
  for (Block* block : blocks) cross_stream_.deferFree(heap, *block, {heap.stream()});
}

// A free is the capture's, or comes after all that the capture has freed is complete. What the
// capture recorded has not run: nothing waits for it. But what else was queued on streams that it
// did not record may have used a block.
Pins CaptureMemory::end(Recording& recording) noexcept {
  core_.progress.captureEnds();
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
  while (Block* block = left.free.pop()) cross_stream_.putBack({&heapOf(*block), block});
  for (const auto& [block, streams] : left.outside)
    cross_stream_.deferFree(heapOf(*block), *block, streams);
  while (Block* block = left.unknown.pop())
    cross_stream_.pending().addUnknown({&heapOf(*block), block});
  return pins;
}

// Mappings that pages left before the capture may be in use still: then no epoch is complete by it.
void CaptureMemory::end(Heap& heap, std::uint32_t number) noexcept {
  const std::unique_lock still = heap.backing().holdStill();
  const MutexLock lock(heap.mutex());
  Completion& known = heap.completion();
  if (!known.endRecording(number)) return;  // a stream has come in at this moment, with nothing
  const bool left_behind = heap.backing().leftInUse(heap, known.beforeRecording());
  left_behind ? noteFreeComplete(heap) : known.noteComplete(heap.endedEpoch());
}

void CaptureMemory::unpin(Pins& pins) noexcept {
  core_.pages.unpin(pins);
  core_.segments.unpin(pins);
}

}  // namespace cistern
