#include "allocator/engine/fallbacks.hpp"

#include <bit>

#include "allocator/base/check.hpp"
#include "allocator/engine/capture/recording.hpp"

namespace cistern {

// The order is the rule: what costs the program nothing comes first, then what costs calls, then
// what takes memory from where it may be missed, and last what makes the host wait.
const Fallbacks::Step Fallbacks::kSteps[] = {
    {"blocks whose last use on other streams is complete by now", &Fallbacks::afterEvents},
    {"what the program can give up", &Fallbacks::afterCallbacks},
    {"what was unused for long, where a threshold is set", &Fallbacks::afterGarbageCollection},
    {"pages moved or made; segments adopted or made", &Fallbacks::moreMemory},
    {"parts of other streams' memory, or room made by giving back", &Fallbacks::afterMakingRoom},
    {"blocks that wait for other streams, a stream at a time", &Fallbacks::afterPending},
    {"what graphs that were reset still hold", &Fallbacks::afterPools},
    {"what is complete when the whole device is", &Fallbacks::afterTheDevice},
};

const Fallbacks::Step Fallbacks::kStepsOfCapture[] = {
    {"what the capture has freed, in the graph's order", &Fallbacks::fromCapture},
    {"blocks whose last use on other streams is complete by now", &Fallbacks::afterEvents},
    {"what the program can give up", &Fallbacks::afterCallbacks},
    {"pages moved or made; segments adopted or made", &Fallbacks::moreMemory},
    {"a segment just as large as need be", &Fallbacks::growTightly},
    {"parts of other streams' memory, complete", &Fallbacks::completePartsOfOthers},
};

Block& Fallbacks::serve(Heap& heap, const Request& request) {
  const bool captured = request.recording != nullptr;
  const std::span<const Step> steps =
      captured ? std::span<const Step>(kStepsOfCapture) : std::span<const Step>(kSteps);
  if (!captured) flusher_.flush();
  core_.tick.fetch_add(1, std::memory_order_relaxed);
  Block* block = tryAll(steps, heap, request);
  // What others have freed meanwhile lies in their caches.
  if (block == nullptr && flusher_.flush()) block = tryAll(steps, heap, request);
  if (block == nullptr) throwOutOfMemory(request);
  CISTERN_AUDIT(auditAtTick());
  return *block;
}

Block* Fallbacks::tryAll(std::span<const Step> steps, Heap& heap, const Request& request) {
  for (const Step& step : steps) {
    if (Block* const block = (this->*step.take)(heap, request)) return block;
  }
  return nullptr;
}

void Fallbacks::throwOutOfMemory(const Request& request) {
  core_.reports.outOfMemory(request, request.pool->backing().leastGrowth(request),
                            core_.device_total, core_.backing().lastError());
}

// Always at first, then ever less often, since each takes as long as there are blocks.
void Fallbacks::auditAtTick() const {
  const std::uint64_t tick = core_.now();
  if (tick < 256 || std::has_single_bit(tick)) accounting_.audit();
}

Block* Fallbacks::search(Heap& heap, const Request& request) {
  const MutexLock lock(heap.mutex());
  return heap.allocate(request);
}

Block* Fallbacks::fromCapture(Heap& heap, const Request& request) {
  return request.recording->take(heap, request);
}

Block* Fallbacks::afterEvents(Heap& heap, const Request& request) {
  cross_stream_.pending().poll();
  return search(heap, request);
}

Block* Fallbacks::afterCallbacks(Heap& heap, const Request& request) {
  const bool tidied = core_.hooks.tidy(Tidying::kMiss);
  return core_.hooks.reclaim() || tidied ? search(heap, request) : nullptr;
}

// Gives memory back rather than finding any; the growth that follows has the room.
Block* Fallbacks::afterGarbageCollection(Heap&, const Request&) {
  giving_back_.collectGarbage();
  return nullptr;
}

// ---- More memory for the heap -------------------------------------------------------------------

Block* Fallbacks::moreMemory(Heap& heap, const Request& request) {
  return request.pool->onPages() ? morePages(heap, request) : moreSegments(heap, request);
}

Block* Fallbacks::morePages(Heap& heap, const Request& request) {
  if (request.recording) return core_.pages.serve(heap, request, PagesFrom::kComplete);
  if (pools_.anyLenders(request)) {
    if (Block* block = core_.pages.serve(heap, request, PagesFrom::kComplete)) return block;
    if (Block* block = cross_stream_.fromLenders(heap, request)) return block;
  }
  return core_.pages.serve(heap, request, PagesFrom::kQueued);
}

Block* Fallbacks::moreSegments(Heap& heap, const Request& request) {
  if (Block* block = cross_stream_.takeComplete(heap, request, false)) return block;
  if (core_.options.cross_stream_reuse == CrossStreamReuse::kWait && !request.recording) {
    if (Block* block = cross_stream_.loanInOrder(heap, request)) return block;
  }
  return core_.segments.grow(heap, request);
}

Block* Fallbacks::growTightly(Heap& heap, const Request& request) {
  return request.pool->onPages() ? nullptr : core_.segments.growTightly(heap, request);
}

Block* Fallbacks::fromLenders(Heap& heap, const Request& request) {
  return pools_.anyLenders(request) ? cross_stream_.fromLenders(heap, request) : nullptr;
}

// ---- Under pressure ----------------------------------------------------------------------------

Block* Fallbacks::completePartsOfOthers(Heap& heap, const Request& request) {
  return cross_stream_.takeComplete(heap, request, true);
}

Block* Fallbacks::partsOfOthers(Heap& heap, const Request& request) {
  if (Block* block = completePartsOfOthers(heap, request)) return block;
  return cross_stream_.loanInOrder(heap, request);
}

Block* Fallbacks::afterMakingRoom(Heap& heap, const Request& request) {
  const MutexLock lock(pressure_mutex_);
  if (Block* block = search(heap, request)) return block;
  if (!request.pool->onPages()) return afterGivingSegmentsBack(heap, request);
  // Whole pages of theirs were asked for already.
  if (Block* block = partsOfOthers(heap, request)) return block;
  return giving_back_.makeRoomFor(request) ? moreMemory(heap, request) : nullptr;
}

// Giving a segment back waits for all queued work. So where there is such work, other streams'
// memory comes first; where there is none, it comes last: taken in parts it falls to pieces.
Block* Fallbacks::afterGivingSegmentsBack(Heap& heap, const Request& request) {
  const bool idle = cross_stream_.streamsAreIdle();
  if (Block* block = idle ? nullptr : partsOfOthers(heap, request)) return block;
  core_.retries.fetch_add(1, std::memory_order_relaxed);
  while (giving_back_.makeRoomFor(request)) {
    if (Block* block = core_.segments.grow(heap, request)) return block;
  }
  if (Block* block = core_.segments.growTightly(heap, request)) return block;
  if (Block* block = fromLenders(heap, request)) return block;
  return idle ? partsOfOthers(heap, request) : nullptr;
}

// ---- Waiting -----------------------------------------------------------------------------------

// Who has waited for another thread here searches again: that one took what it needed, and left the
// rest.
Block* Fallbacks::afterPending(Heap& heap, const Request& request) {
  const MutexLock lock(waiting_mutex_);
  while (cross_stream_.pending().waiting() > 0) {
    core_.waits.fetch_add(1, std::memory_order_relaxed);
    if (!cross_stream_.pending().wait()) break;
    if (Block* block = search(heap, request)) return block;
    if (request.pool->onPages()) {
      if (Block* block = moreMemory(heap, request)) return block;
    }
    if (Block* block = afterMakingRoom(heap, request)) return block;
  }
  return nullptr;
}

Block* Fallbacks::afterPools(Heap& heap, const Request& request) {
  while (waitForPools()) {
    (void)core_.hooks.tidy(Tidying::kMiss);  // tells the program, which may free more
    if (Block* block = moreMemory(heap, request)) return block;
    if (Block* block = afterMakingRoom(heap, request)) return block;
  }
  return nullptr;
}

bool Fallbacks::waitForPools() {
  const MutexLock lock(waiting_mutex_);
  return core_.hooks.tidy(Tidying::kLastResort);
}

// What streams cannot be asked about, because they were destroyed, is complete when the whole
// device is.
Block* Fallbacks::afterTheDevice(Heap& heap, const Request& request) {
  const MutexLock lock(waiting_mutex_);
  if (!request.pool->onPages()) {
    if (Block* block = afterMakingRoom(heap, request)) return block;
    return cross_stream_.loanWhenIdle(heap, request);
  }
  core_.waits.fetch_add(1, std::memory_order_relaxed);
  if (!core_.progress.completeAll(core_.heaps.all())) return nullptr;
  if (Block* block = moreMemory(heap, request)) return block;
  return afterMakingRoom(heap, request);
}

}  // namespace cistern
