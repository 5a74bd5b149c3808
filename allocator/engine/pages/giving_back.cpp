// Pages go back to the device: on emptyCache, under pressure, and those too old to keep. See
// page_backing.hpp; release.cpp takes them out of their heaps.
#include <algorithm>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/page_backing.hpp"
#include "allocator/engine/pages/parking.hpp"
#include "allocator/engine/pages/release.hpp"

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

// The backing's lock is held for a while at a time only.
void PageBacking::emptyCache(const std::vector<Heap*>& heaps) {
  bool dead = false;
  for (Heap* heap : heaps) {
    if (!heap->onPages()) continue;
    dead |= !emptyHeap(*heap) && streamIsDead(core_, *heap);
  }
  // What a destroyed stream has left behind is complete when the whole device is: there is nothing
  // else to ask.
  if (dead && core_.progress.completeAll(heaps)) {
    for (Heap* heap : heaps) {
      if (heap->onPages()) (void)emptyHeap(*heap);
    }
  }
  const MutexLock lock(mutex_);
  unmapOrphans(ground_);
  (void)releaseSpares();
  if (later_.drains() && core_.options.background_thread) (void)background_.wake();
}

std::uint64_t PageBacking::releaseSpares() {
  std::uint64_t released = 0;
  while (PhysicalPage* spare = ground_.table.spares()) {
    const std::uint64_t bytes = spare->bytes();
    if (!ground_.release(*spare)) break;
    released += bytes;
  }
  return released;
}

std::uint64_t PageBacking::release(const std::vector<Heap*>& heaps, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  std::uint64_t released = 0;
  for (Heap* heap : heaps) {
    if (released >= bytes) break;
    if (heap->onPages())
      released += releaseFree(ground_, *heap, {UINT32_MAX, bytes - released}).bytes;
  }
  return released + (released < bytes ? releaseSpares() : 0);
}

// True when nothing was left behind. What was goes when its work is complete.
bool PageBacking::emptyHeap(Heap& heap) {
  constexpr std::uint64_t kAtATime = 256 * kUnit;  // others may want the lock
  while (true) {
    const MutexLock lock(mutex_);
    const Released released = releaseFree(ground_, heap, {UINT32_MAX, kAtATime});
    if (released.bytes > 0) continue;
    if (released.more_later && !streamIsDead(core_, heap)) later_.drainLater(heap);
    return !released.more_later;
  }
}

// A page's age is counted in its heap's epochs, one of which ends each time that this looks.
void PageBacking::collectGarbage(const std::vector<Heap*>& all, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (core_.limit.reserved() <= bytes) return;
  std::uint64_t age = 0, count = 0;
  std::vector<Heap*> heaps = all;
  std::erase_if(heaps, [](const Heap* heap) { return !heap->onPages(); });
  for (Heap* heap : heaps) {
    core_.progress.refresh(*heap);
    const MutexLock heap_lock(heap->mutex());
    (void)bringBack(ground_, *heap);
    const FreePageScan scan(*heap, ground_.scans, Whither::kAnywhere);
    for (const Mapping* mapping : scan.freeMappings())
      age += heap->completion().now().epoch - mapping->last_use.epoch;
    count += scan.freeMappings().size();
  }
  if (count == 0) return;
  const std::uint64_t mean = age / count;
  for (Heap* heap : heaps) {
    const std::uint64_t reserved = core_.limit.reserved();
    if (reserved <= bytes) return;
    std::uint32_t epoch = 0;
    {
      const MutexLock heap_lock(heap->mutex());
      epoch = heap->completion().now().epoch;
    }
    if (epoch < mean) continue;
    (void)releaseFree(ground_, *heap, {std::uint32_t(epoch - mean), reserved - bytes});
  }
}

}  // namespace cistern
