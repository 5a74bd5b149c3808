// Pages go back to the device: on emptyCache, under pressure, and those too old to keep. See
// page_backing.hpp; release.cpp takes them out of their heaps.
#include <algorithm>
#include <utility>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/page_backing.hpp"
#include "allocator/engine/pages/parking.hpp"

namespace cistern {

using namespace pages;

namespace {

bool streamIsDead(Engine& core, const Heap& heap) {
  const Stream stream = heap.stream();
  const auto refused = [&] {
    const Result<CaptureInfo> info = core.device.captureInfo(stream);
    return !info.ok() && info.error().kind == ErrorKind::kInvalidHandle;
  };
  return core.streams.ask(stream, refused, [](const SharedStreamEnd&) { return false; });
}

}  // namespace

void PageBacking::emptyCache(const std::vector<Heap*>& heaps) {
  bool dead = false;
  for (Heap* heap : heaps) dead |= !emptyHeap(*heap) && streamIsDead(core_, *heap);
  // What a destroyed stream has left behind is complete when the whole device is: there is nothing
  // else to ask.
  if (dead && core_.progress.completeAll(heaps)) {
    for (Heap* heap : heaps) (void)emptyHeap(*heap);
  }
  const MutexLock lock(mutex_);
  (void)releaseSpares(ground_);
  if (later_.drains() && core_.options.background_thread) (void)background_.wake();
}

// True when nothing was left behind. What was goes when its work is complete. The backing's lock is
// held for a while at a time only.
bool PageBacking::emptyHeap(Heap& heap) {
  constexpr std::uint64_t kAtATime = 256 * kUnit;
  while (heap.onPages()) {
    const MutexLock lock(mutex_);
    const Released released = releaseFree(ground_, heap, {UINT32_MAX, kAtATime});
    if (released.bytes > 0) continue;
    if (released.more_later && !streamIsDead(core_, heap)) later_.drainLater(heap);
    return !released.more_later;
  }
  return true;
}

std::uint64_t PageBacking::release(const std::vector<Heap*>& heaps, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  std::uint64_t released = 0;
  for (Heap* heap : heaps) {
    if (released >= bytes) break;
    if (heap->onPages())
      released += releaseFree(ground_, *heap, {UINT32_MAX, bytes - released}).bytes;
  }
  return released + (released < bytes ? releaseSpares(ground_) : 0);
}

// A page's age is counted in its heap's epochs, one of which ends each time that this looks.
void PageBacking::collectGarbage(const std::vector<Heap*>& all, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (core_.limit.reserved() <= bytes) return;
  std::uint64_t age = 0, count = 0;
  std::vector<std::pair<Heap*, std::uint32_t>> heaps;  // and their present epochs
  for (Heap* heap : all) {
    if (!heap->onPages()) continue;
    core_.progress.refresh(*heap);
    const MutexLock heap_lock(heap->mutex());
    bringBack(ground_, *heap);
    const FreePageScan scan(*heap, ground_.scans, Whither::kAnywhere);
    const std::uint32_t now = heap->completion().now().epoch;
    for (const Mapping* mapping : scan.freeMappings()) age += now - mapping->last_use.epoch;
    count += scan.freeMappings().size();
    heaps.emplace_back(heap, now);
  }
  const std::uint64_t mean = age / std::max<std::uint64_t>(count, 1);
  for (const auto& [heap, now] : heaps) {
    const std::uint64_t reserved = core_.limit.reserved();
    if (reserved <= bytes) return;
    if (now >= mean)
      (void)releaseFree(ground_, *heap, {std::uint32_t(now - mean), reserved - bytes});
  }
}

}  // namespace cistern
