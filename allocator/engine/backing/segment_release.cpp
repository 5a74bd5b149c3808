// Segments go back to the device. See segment_backing.hpp.
#include <algorithm>

#include "allocator/engine/backing/segment_backing.hpp"

namespace cistern {
namespace {

struct Idle {
  HeapSegment* segment;
  Heap* heap;
  std::uint64_t bytes;
  std::uint64_t since;
};

// The wholly free segments of the heaps, as they are now.
std::vector<Idle> idleSegments(const std::vector<Heap*>& heaps) {
  std::vector<Idle> idle;
  for (Heap* heap : heaps) {
    if (heap->onPages()) continue;
    const MutexLock lock(heap->mutex());
    forEachSegment(*heap, [&](HeapSegment& own) {
      if (own.whollyFree()) idle.push_back({&own, heap, own.bytes, own.idleSince()});
    });
  }
  return idle;
}

}  // namespace

// A segment that was idle a moment ago may be in use, gone or elsewhere by now. Its pool stays
// until it is back: it may be refused.
bool SegmentBacking::releaseOneIdle(HeapSegment& segment, Heap& heap) {
  std::shared_ptr<void> visiting;
  {
    const MutexLock lock(heap.mutex());
    if (segment.heap.load(std::memory_order_relaxed) != &heap || !segment.whollyFree())
      return false;
    if (pinned_.pinned(segment)) return false;  // asked last: it was, before it was freed
    visiting = heap.pool().token();
    heap.remove(segment, true);
    heap.leaving().begin();
  }
  return giveBack(segment, heap);
}

std::uint64_t SegmentBacking::release(const std::vector<Heap*>& heaps, std::uint64_t bytes) {
  std::uint64_t released = 0;
  for (Heap* heap : heaps) released += discardRefused(*heap);
  for (const Idle& one : idleSegments(heaps)) {
    if (released >= bytes) break;
    if (releaseOneIdle(*one.segment, *one.heap)) released += one.bytes;
  }
  return released;
}

// What has been idle for at least the mean time goes, the oldest first.
void SegmentBacking::collectGarbage(const std::vector<Heap*>& heaps, std::uint64_t bytes) {
  const auto above = [&] { return limit_.reserved() > bytes; };
  if (!above()) return;
  std::vector<Idle> idle = idleSegments(heaps);
  if (idle.empty()) return;
  const std::uint64_t now = tick_.load(std::memory_order_relaxed);
  std::uint64_t total_age = 0;
  for (const Idle& one : idle) total_age += now - one.since;
  const std::uint64_t mean_age = total_age / idle.size();
  std::sort(idle.begin(), idle.end(),
            [](const Idle& a, const Idle& b) { return a.since < b.since; });
  for (const Idle& one : idle) {
    if (!above() || now - one.since < mean_age) return;
    releaseOneIdle(*one.segment, *one.heap);
  }
}

// Nobody can ask for it again later, so a device that says no is asked once more.
void SegmentBacking::leave(Heap& heap) noexcept {
  const auto give = [&](const Segment& segment) {
    const auto& own = static_cast<const HeapSegment&>(segment);
    const auto once = [&] { return returnToDevice(own.device_base, own.bytes, heap.pool()).ok(); };
    if (!once()) (void)once();
  };
  for (const Segment* s = heap.leaving().refused(); s; s = s->next) give(*s);
  if (!heap.onPages()) forEachSegment(heap, give);
}

}  // namespace cistern
