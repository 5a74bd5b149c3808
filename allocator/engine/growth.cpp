// Segments from the device and back. Every function here leaves everything as it was when a device
// call fails, and makes no device call under a heap's lock.
#include <algorithm>

#include "allocator/base/process.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

// Counts bytes as reserved if the limit has room for them.
bool CachingAllocator::admit(std::uint64_t bytes) {
  std::uint64_t reserved = reserved_.load(std::memory_order_relaxed);
  do {
    if (reserved + bytes > limit()) return false;
  } while (!reserved_.compare_exchange_weak(reserved, reserved + bytes, std::memory_order_relaxed));
  return true;
}

std::uint64_t CachingAllocator::leastGrowth(const Request& request) const {
  if (!options_.tight_growth) return rules_.segmentFor(request);
  return roundUp(request.rounded(), kSegmentUnit);
}

// A segment of the usual size, or, where there is no room for that, just as large as need be.
Block* CachingAllocator::grow(Heap& heap, const Request& request) {
  const std::uint64_t usual = rules_.segmentFor(request);
  if (Block* block = growBy(usual, heap, request)) return block;
  const std::uint64_t least = leastGrowth(request);
  return least < usual ? growBy(least, heap, request) : nullptr;
}

Block* CachingAllocator::growBy(std::uint64_t bytes, Heap& heap, const Request& request) {
  if (!admit(bytes)) return nullptr;
  Result<Address> base = [&] {
    const RelaxedCaptureMode relaxed(device_);
    return device_.malloc(bytes);
  }();
  if (!base) {
    reserved_.fetch_sub(bytes, std::memory_order_relaxed);
    const MutexLock lock(hooks_mutex_);
    last_device_error_ = base.error().message();
    return nullptr;
  }
  num_device_alloc_.fetch_add(1, std::memory_order_relaxed);
  try {
    return install(base.value(), bytes, heap, request);
  } catch (...) {  // host memory ran out: as if the device had refused
    (void)device_.free(base.value());
    num_device_free_.fetch_add(1, std::memory_order_relaxed);
    reserved_.fetch_sub(bytes, std::memory_order_relaxed);
    throw;
  }
}

Block* CachingAllocator::install(Address base, std::uint64_t bytes, Heap& heap,
                                 const Request& request) {
  HeapSegment& segment = records_.take();
  segment.base = base;
  segment.bytes = bytes;
  segment.kind = request.kind;
  try {
    segments_.insert(segment);
  } catch (...) {
    records_.give(segment);
    throw;
  }
  bool added = false;
  try {
    const MutexLock lock(heap.mutex());
    heap.add(segment, true);
    added = true;
    return heap.allocate(request);
  } catch (...) {
    if (added) {
      const MutexLock lock(heap.mutex());
      heap.remove(segment);
    }
    segments_.erase(segment);
    records_.give(segment);
    throw;
  }
}

// Returns one segment, which is in no heap, to the device. If the device will not have it, the heap
// that it came from keeps it.
bool CachingAllocator::giveBack(HeapSegment& segment, Heap& owner) {
  segments_.erase(segment);
  const Status freed = [&] {
    const RelaxedCaptureMode relaxed(device_);
    return device_.free(segment.base);
  }();
  if (!freed) {
    segments_.insert(segment);  // its leaves exist: cannot fail
    const MutexLock lock(owner.mutex());
    owner.add(segment, false);
    return false;
  }
  num_device_free_.fetch_add(1, std::memory_order_relaxed);
  reserved_.fetch_sub(segment.bytes, std::memory_order_relaxed);
  records_.give(segment);
  return true;
}

namespace {

struct Idle {
  HeapSegment* segment;
  Heap* heap;
  std::uint64_t bytes;
  std::uint64_t since;
};

// The wholly free segments of all heaps, as they are now.
std::vector<Idle> idleSegments(const std::vector<Heap*>& heaps) {
  std::vector<Idle> idle;
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
      for (Segment* s = heap->layout(kind).segments(); s; s = s->next) {
        auto* own = static_cast<HeapSegment*>(s);
        if (own->whollyFree()) idle.push_back({own, heap, own->bytes, own->idle_since});
      }
    }
  }
  return idle;
}

}  // namespace

// A segment that was idle a moment ago may be in use, gone or elsewhere by now.
bool CachingAllocator::releaseOneIdle(HeapSegment& segment, Heap& heap) {
  {
    const MutexLock lock(heap.mutex());
    if (segment.heap.load(std::memory_order_relaxed) != &heap || !segment.whollyFree())
      return false;
    heap.remove(segment);
  }
  return giveBack(segment, heap);
}

// Makes room for `bytes` under the limit: with the smallest idle segment that does it alone, else
// with the largest ones first. Returns the bytes given back.
std::uint64_t CachingAllocator::releaseIdle(std::uint64_t bytes) {
  const std::uint64_t reserved = reserved_.load(std::memory_order_relaxed);
  const std::uint64_t room = limit() > reserved ? limit() - reserved : 0;
  const std::uint64_t needed = room < bytes ? bytes - room : bytes;  // else the device is short
  std::vector<Idle> idle = idleSegments(heaps_.all());
  std::sort(idle.begin(), idle.end(),
            [](const Idle& a, const Idle& b) { return a.bytes < b.bytes; });
  const auto alone =
      std::find_if(idle.begin(), idle.end(), [&](const Idle& one) { return one.bytes >= needed; });
  if (alone != idle.end() && releaseOneIdle(*alone->segment, *alone->heap)) return alone->bytes;
  std::uint64_t released = 0;
  for (auto one = idle.rbegin(); one != idle.rend() && released < needed; ++one) {
    if (releaseOneIdle(*one->segment, *one->heap)) released += one->bytes;
  }
  return released;
}

void CachingAllocator::emptyCache() {
  pollPending(false);
  for (const Idle& one : idleSegments(heaps_.all())) releaseOneIdle(*one.segment, *one.heap);
}

// Above the threshold, gives back what has been idle for at least the mean time, oldest first,
// until below it.
void CachingAllocator::collectGarbage() {
  const auto threshold = std::uint64_t(options_.garbage_collection_threshold * double(limit()));
  const auto above = [&] { return reserved_.load(std::memory_order_relaxed) > threshold; };
  if (!above()) return;
  std::vector<Idle> idle = idleSegments(heaps_.all());
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

CachingAllocator::~CachingAllocator() {
  if (!driverMayBeCalled()) return;
  events_.destroySpares();
  for (Heap* heap : heaps_.all()) {
    const MutexLock lock(heap->mutex());
    if (heap->completion.under_way) (void)device_.destroyEvent(heap->completion.event);
    for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
      for (Segment* s = heap->layout(kind).segments(); s; s = s->next) {
        for (Block* b = s->first; b; b = b->next) {
          if (b->state() == BlockState::kAllocated) delete static_cast<StreamUses*>(b->use.uses);
        }
        segments_.erase(static_cast<HeapSegment&>(*s));
        (void)device_.free(s->base);
      }
    }
  }
}

}  // namespace cistern
