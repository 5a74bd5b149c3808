// The steps of a miss that do not wait until memory becomes free. One thing here does make the host
// wait: giving a segment back waits for all queued work.
#include "allocator/engine/paths/fallback_steps.hpp"

#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/cross_stream/loans.hpp"
#include "allocator/engine/giving_back/giving_back.hpp"
#include "allocator/engine/overflow/overflow.hpp"

namespace cistern::slow_path {

Block* search(Engine&, Heap& heap, const Request& request) {
  const MutexLock lock(heap.mutex());
  return heap.allocateMovingIn(request);
}

Block* fromCapture(Engine&, Heap& heap, const Request& request) {
  return recordingOf(request).take(heap, request);
}

// A miss pays for a bounded number of blocks that wait.
Block* afterEvents(Engine& engine, Heap& heap, const Request& request) {
  engine.pending.poll(PendingFrees::kMany);
  return search(engine, heap, request);
}

Block* afterTidying(Engine& engine, Heap& heap, const Request& request) {
  return engine.hooks.tidy(Tidying::kMiss) ? search(engine, heap, request) : nullptr;
}

// Gives memory back rather than finding any; the growth that follows has the room.
Block* afterGarbageCollection(Engine& engine, Heap&, const Request&) {
  collectGarbage(engine);
  return nullptr;
}

// ---- More memory for the heap -------------------------------------------------------------------

// kComplete takes other heaps' pages only if their last use is complete. kQueued takes, at last,
// also pages whose last use is queued: the stream waits for it.
static Block* morePages(Engine& engine, Heap& heap, const Request& request) {
  if (request.capture) return engine.pages.place(heap, request, PagesFrom::kComplete);
  if (engine.pools.anyLenders(request)) {
    if (Block* block = engine.pages.place(heap, request, PagesFrom::kComplete)) return block;
    if (Block* block = takeFromLenders(engine, heap, request)) return block;
  }
  return engine.pages.place(heap, request, PagesFrom::kQueued);
}

static Block* moreSegments(Engine& engine, Heap& heap, const Request& request) {
  if (Block* block = takeComplete(engine, heap, request, Extent::kSegments)) return block;
  const bool waits =
      engine.options.cross_stream_reuse == CrossStreamReuse::kWait && engine.progress.ordersSoon();
  if (waits && !request.capture) {
    if (Block* block = loanInOrder(engine, heap, request)) return block;
  }
  return engine.segments.grow(heap, request);
}

// A device may claim pages and refuse each: then memory comes in segments from the first request
// on.
Block* moreMemory(Engine& engine, Heap& heap, const Request& request) {
  if (request.pool->onPages()) {
    Block* const block = morePages(engine, heap, request);
    if (block != nullptr || !engine.pages.areRefused()) return block;
    engine.pools.leavePages();
  }
  return moreSegments(engine, heap, request);
}

// A request that would else be refused pays for all blocks that wait for events. Blocks whose pool
// is being captured into may then have to wait for all streams. A second round picks these up.
Block* afterAllEvents(Engine& engine, Heap& heap, const Request& request) {
  for (int times = 0; times < 2 && engine.pending.poll(); ++times) {
    if (Block* block = search(engine, heap, request)) return block;
    if (Block* block = moreMemory(engine, heap, request)) return block;
  }
  return nullptr;
}

Block* growTightly(Engine& engine, Heap& heap, const Request& request) {
  return request.pool->onPages() ? nullptr : engine.segments.grow(heap, request, true);
}

// ---- Under pressure -----------------------------------------------------------------------------

Block* completePartsOfOthers(Engine& engine, Heap& heap, const Request& request) {
  return takeComplete(engine, heap, request, Extent::kParts);
}

Block* partsOfOthers(Engine& engine, Heap& heap, const Request& request) {
  if (Block* block = completePartsOfOthers(engine, heap, request)) return block;
  return loanInOrder(engine, heap, request);
}

// Giving a segment back waits for all queued work. So if there is such work, other streams' memory
// comes first. Otherwise it comes last: taken in parts it falls to pieces.
static Block* afterGivingSegmentsBack(Engine& engine, Heap& heap, const Request& request) {
  const bool idle = streamsAreIdle(engine);
  if (Block* block = idle ? nullptr : partsOfOthers(engine, heap, request)) return block;
  engine.retries.fetch_add(1, std::memory_order_relaxed);
  while (makeRoomFor(engine, request)) {
    if (Block* block = engine.segments.grow(heap, request)) return block;
  }
  if (Block* block = growTightly(engine, heap, request)) return block;
  if (Block* block = takeFromLenders(engine, heap, request)) return block;
  return idle ? partsOfOthers(engine, heap, request) : nullptr;
}

Block* afterMakingRoom(Engine& engine, Heap& heap, const Request& request) {
  const MutexLock lock(engine.pressure_mutex);
  if (Block* block = search(engine, heap, request)) return block;
  if (!request.pool->onPages()) return afterGivingSegmentsBack(engine, heap, request);
  // Whole pages of other streams were asked for already.
  if (Block* block = partsOfOthers(engine, heap, request)) return block;
  return makeRoomFor(engine, request) ? moreMemory(engine, heap, request) : nullptr;
}

Block* fromFreeHost(Engine& engine, Heap&, const Request& request) {
  return fromFreeHostMemory(engine, request);
}

// ---- Small and large ----------------------------------------------------------------------------

static Request ofOtherKind(const Request& request) {
  Request other = request;
  other.kind = request.kind == SizeKind::kSmall ? SizeKind::kLarge : SizeKind::kSmall;
  return other;
}

// Small and large blocks are kept apart so that a small one does not hold a large page. That is
// worth less than the request.
Block* fromOtherKind(Engine& engine, Heap& heap, const Request& request) {
  constexpr Step kFree[] = {search, partsOfOthers, takeFromLenders};
  return firstOf(kFree, engine, heap, ofOtherKind(request));
}

Block* fromOtherKindInCapture(Engine& engine, Heap& heap, const Request& request) {
  constexpr Step kFree[] = {fromCapture, search, completePartsOfOthers};
  return firstOf(kFree, engine, heap, ofOtherKind(request));
}

}  // namespace cistern::slow_path
