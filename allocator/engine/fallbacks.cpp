// The steps of a miss.
#include <bit>
#include <span>
#include <thread>

#include "allocator/base/check.hpp"
#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/giving_back.hpp"
#include "allocator/engine/reports/reports.hpp"
#include "allocator/engine/sharing/imports.hpp"
#include "allocator/engine/slow_path.hpp"
#include "allocator/engine/statistics/accounting.hpp"
#include "allocator/engine/streams/cross_stream.hpp"

namespace cistern::slow_path {
namespace {

using Step = Block* (*)(Engine& engine, Heap& heap, const Request& request);

Block* firstOf(std::span<const Step> steps, Engine& engine, Heap& heap, const Request& request) {
  for (const Step step : steps) {
    if (Block* const block = step(engine, heap, request)) return block;
  }
  return nullptr;
}

Block* search(Engine&, Heap& heap, const Request& request) {
  const MutexLock lock(heap.mutex());
  return heap.allocate(request);
}

Block* fromCapture(Engine&, Heap& heap, const Request& request) {
  return request.recording->take(heap, request);
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

Block* morePages(Engine& engine, Heap& heap, const Request& request) {
  if (request.recording) return engine.pages.serve(heap, request, PagesFrom::kComplete);
  if (engine.pools.anyLenders(request)) {
    if (Block* block = engine.pages.serve(heap, request, PagesFrom::kComplete)) return block;
    if (Block* block = takeFromLenders(engine, heap, request)) return block;
  }
  return engine.pages.serve(heap, request, PagesFrom::kQueued);
}

Block* moreSegments(Engine& engine, Heap& heap, const Request& request) {
  if (Block* block = takeComplete(engine, heap, request, Extent::kSegments)) return block;
  if (engine.options.cross_stream_reuse == CrossStreamReuse::kWait && !request.recording) {
    if (Block* block = loanInOrder(engine, heap, request, false)) return block;
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

// A request that would else be refused pays for all of them. During a capture into their pool some
// wait a second time, for all streams.
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
  return loanInOrder(engine, heap, request, true);
}

// Giving a segment back waits for all queued work. So where there is such work, other streams'
// memory comes first; where there is none, it comes last: taken in parts it falls to pieces.
Block* afterGivingSegmentsBack(Engine& engine, Heap& heap, const Request& request) {
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
  // Whole pages of theirs were asked for already.
  if (Block* block = partsOfOthers(engine, heap, request)) return block;
  return makeRoomFor(engine, request) ? moreMemory(engine, heap, request) : nullptr;
}

// ---- Waiting ------------------------------------------------------------------------------------

constexpr Step kWhatThereIsNow[] = {moreMemory, afterMakingRoom};

// A thread that has waited for another here searches again: the other took what it needed, and left
// the rest.
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
    (void)engine.hooks.tidy(Tidying::kMiss);  // tells the program, which may free more
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

// What lies free may be of a size, or at a place, that serves nobody.
Block* afterGivingBack(Engine& engine, Heap& heap, const Request& request, Givers givers) {
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

// ---- Small and large ----------------------------------------------------------------------------

Request ofOtherKind(const Request& request) {
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

// ---- The steps ----------------------------------------------------------------------------------

// The order is the rule: what costs the program nothing comes first, then what costs calls, then
// what takes memory from where it may be missed, and last what makes the host wait.
constexpr Step kSteps[] = {
    afterEvents,               // some blocks whose last use on other streams is complete by now
    afterTidying,              // what pools and graphs that have ended do not need
    afterGarbageCollection,    // what was unused for long, where a threshold is set
    moreMemory,                // pages moved or made; segments adopted or made
    afterAllEvents,            // all blocks whose last use on other streams is complete by now
    afterMakingRoom,           // parts of other streams' memory, or room made by giving back
    afterPending,              // blocks that wait for other streams, a stream at a time
    afterResetGraphs,          // what graphs that were reset still hold
    afterTheDevice,            // what is complete when the whole device is
    afterGivingAllBack,        // all that lies free, given back and made anew
    afterGivingLivePoolsBack,  // the same of pools that others use
    fromOtherKind,             // a small request out of large memory, or a large one out of small
};

constexpr Step kStepsOfCapture[] = {
    fromCapture,             // what the capture has freed, in the graph's order
    afterEvents,             // some blocks whose last use on other streams is complete by now
    afterTidying,            // what pools and graphs that have ended do not need
    moreMemory,              // pages moved or made; segments adopted or made
    afterAllEvents,          // all blocks whose last use on other streams is complete by now
    growTightly,             // a segment just as large as need be
    completePartsOfOthers,   // parts of other streams' memory, complete
    fromOtherKindInCapture,  // a small request out of large memory, or a large one out of small
};

// Always at first, then ever less often, since each takes as long as there are blocks.
[[maybe_unused]] void auditAtTick(Engine& engine) {
  const std::uint64_t tick = engine.now();
  if (tick < 256 || std::has_single_bit(tick)) audit(engine);
}

/// How often a thread goes through the steps at most: others that go on would keep it there.
constexpr int kTries = 8;

Block* goThrough(std::span<const Step> steps, Engine& engine, Heap& heap, const Request& request) {
  for (int tries = 0; tries < kTries; ++tries) {
    const InHand in_hand(engine);
    if (Block* block = firstOf(steps, engine, heap, request)) return block;
    // What others have freed meanwhile may lie in their caches, or still be in their hands.
    if (!flushCaches(engine) && in_hand.alone()) return nullptr;
    std::this_thread::yield();
  }
  return nullptr;
}

// ---- The program --------------------------------------------------------------------------------

/// What changes when memory becomes free, here or elsewhere on the device.
struct Footing {
  explicit Footing(Engine& engine)
      : freed(engine.totals.read()[Stat::kAllocation].freed),
        reserved(engine.limit.reserved()),
        device_free(deviceFree(engine)) {}
  bool operator==(const Footing&) const = default;

  std::int64_t freed;  ///< blocks, so far
  std::uint64_t reserved, device_free;
};

// What the program can give up is asked for last: it may be dear. A callback that says it has freed
// something where nothing has changed would be called for ever.
Block* afterCallbacks(std::span<const Step> steps, Engine& engine, Heap& heap,
                      const Request& request) {
  if (!engine.hooks.reclaim.any()) return nullptr;
  for (std::uint32_t attempt = 1;; ++attempt) {
    const Footing before(engine);
    if (!engine.hooks.reclaim(shortageOf(engine, request, attempt))) return nullptr;
    engine.made.requireHere("allocate");  // a callback may have forked
    flushCaches(engine);
    if (Block* block = goThrough(steps, engine, heap, request)) return block;
    if (Footing(engine) == before) return nullptr;
  }
}

}  // namespace

Block& fallBack(Engine& engine, Heap& heap, const Request& request) {
  const bool captured = request.recording != nullptr;
  const std::span<const Step> steps =
      captured ? std::span<const Step>(kStepsOfCapture) : std::span<const Step>(kSteps);
  if (!captured) flushCaches(engine);
  engine.tick.fetch_add(1, std::memory_order_relaxed);
  Block* block = goThrough(steps, engine, heap, request);
  if (block == nullptr) block = afterCallbacks(steps, engine, heap, request);
  if (block == nullptr) throwOutOfMemory(engine, request);
  CISTERN_AUDIT(auditAtTick(engine));
  return *block;
}

}  // namespace cistern::slow_path
