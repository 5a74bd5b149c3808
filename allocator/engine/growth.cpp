// Segments from the device and back. Every function here leaves everything as it was when a device
// call fails, and makes no device call under a heap's lock.
#include <algorithm>
#include <new>
#include <utility>

#include "allocator/base/process.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

std::uint64_t CachingAllocator::leastGrowth(const Request& request) const {
  if (onPages(request)) return roundUp(request.rounded(), pages::kUnit);
  return roundUp(request.rounded(), kSegmentUnit);
}

// A segment of the usual size.
Block* CachingAllocator::grow(Heap& heap, const Request& request) {
  return growBy(request.pool->rules().segmentFor(request), heap, request);
}

// A segment just as large as need be, where there is no room for the usual size.
Block* CachingAllocator::growTightly(Heap& heap, const Request& request) {
  const std::uint64_t least = leastGrowth(request);
  return least < request.pool->rules().segmentFor(request) ? growBy(least, heap, request) : nullptr;
}

Result<Address> CachingAllocator::takeFromDevice(std::uint64_t bytes, const Request& request) {
  const std::shared_ptr<SegmentSource> source = request.pool->source();
  const RelaxedCaptureMode relaxed(device_);
  return source ? source->allocate(bytes, request.stream) : device_.malloc(bytes);
}

// What a source throws is the program's own, and leaves the verb. The record comes before the
// memory: without one nobody would know of what the device will not have back.
Block* CachingAllocator::growBy(std::uint64_t bytes, Heap& heap, const Request& request) {
  if (!limit_.admit(bytes)) return nullptr;
  HeapSegment* segment = nullptr;
  Result<Address> base = DeviceError{};
  try {
    segment = &records_.take();
    base = takeFromDevice(bytes, request);
  } catch (...) {
    if (segment) records_.give(*segment);
    limit_.giveBack(bytes);
    throw;
  }
  noteDeviceAnswer(base);
  if (!base) {
    records_.give(*segment);
    limit_.giveBack(bytes);
    return nullptr;
  }
  num_device_alloc_.fetch_add(1, std::memory_order_relaxed);
  segment->bytes = bytes;
  segment->device_base = base.value();
  return install(*segment, heap, request);
}

// What an OutOfMemory says of the device is its last answer.
template <class Answer>
void CachingAllocator::noteDeviceAnswer(const Answer& answer) noexcept {
  const MutexLock lock(hooks_mutex_);
  try {
    last_device_error_ = answer.ok() ? std::string() : answer.error().message();
  } catch (const std::bad_alloc&) {
    last_device_error_.clear();
  }
}

// The place of a new segment among all: after the older ones, or before them.
Address CachingAllocator::nextPlace(std::uint64_t bytes) {
  if (options_.prefer_old_segments) return places_.fetch_add(bytes, std::memory_order_relaxed);
  return places_.fetch_sub(bytes, std::memory_order_relaxed) - bytes;
}

// Where host memory runs out it is as if the device had refused, or, once the heap has the segment,
// as if it had been there, free, before.
Block* CachingAllocator::install(HeapSegment& segment, Heap& heap, const Request& request) {
  bool mapped = false, added = false;
  try {
    segment.base = nextPlace(segment.bytes);
    segment.kind = request.kind;
    segments_.insert(segment);
    mapped = true;
    const MutexLock lock(heap.mutex());
    heap.add(segment, Heap::From::kDevice);
    added = true;
    return heap.allocateFrom(*segment.first, request);
  } catch (...) {
    if (added) throw;
    if (mapped) segments_.erase(segment);
    {
      const MutexLock lock(heap.mutex());
      ++heap.leaving;
    }
    (void)discard(segment, heap);
    throw;
  }
}

// A segment that no heap places blocks in, and that the heap counts as leaving. One that the device
// will not have stays with the heap, to be offered again.
bool CachingAllocator::discard(HeapSegment& segment, Heap& heap) {
  const bool gone = freeOnDevice(segment.device_base, segment.bytes, heap.pool());
  {
    const MutexLock lock(heap.mutex());
    if (gone) {
      --heap.leaving;
    } else {
      segment.next = std::exchange(heap.refused, &segment);
    }
  }
  if (gone) records_.give(segment);
  return gone;
}

std::uint64_t CachingAllocator::discardRefused(Heap& heap) {
  std::uint64_t discarded = 0;
  while (true) {
    HeapSegment* segment = nullptr;
    {
      const MutexLock lock(heap.mutex());
      segment = heap.refused;
      if (segment == nullptr) return discarded;
      heap.refused = static_cast<HeapSegment*>(segment->next);
    }
    const std::uint64_t bytes = segment->bytes;
    if (!discard(*segment, heap)) return discarded;
    discarded += bytes;
  }
}

// A source that throws has refused.
Status CachingAllocator::returnToDevice(Address base, std::uint64_t bytes,
                                        const Pool& pool) noexcept {
  const std::shared_ptr<SegmentSource> source = pool.source();
  const RelaxedCaptureMode relaxed(device_);
  if (source == nullptr) return device_.free(base);
  try {
    return source->free(base, bytes);
  } catch (...) {
    return DeviceError{Call::kFree, ErrorKind::kOther, 0, "thrown", {}};
  }
}

bool CachingAllocator::freeOnDevice(Address base, std::uint64_t bytes, const Pool& pool) {
  const Status freed = returnToDevice(base, bytes, pool);
  if (!freed) {
    noteDeviceAnswer(freed);
    return false;
  }
  num_device_free_.fetch_add(1, std::memory_order_relaxed);
  limit_.giveBack(bytes);
  return true;
}

// Returns one segment, which is in no heap, to the device. If the device will not have it, the heap
// that it came from keeps it: that one counts it as leaving, and so stays in its pool meanwhile.
bool CachingAllocator::giveBack(HeapSegment& segment, Heap& owner) {
  segments_.erase(segment);
  const bool gone = freeOnDevice(segment.device_base, segment.bytes, owner.pool());
  if (!gone) segments_.insert(segment);  // its leaves exist: cannot fail
  {
    const MutexLock lock(owner.mutex());
    --owner.leaving;
    if (!gone) owner.add(segment, Heap::From::kRefused);
  }
  if (gone) records_.give(segment);
  return gone;
}

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
    for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
      for (Segment* s = heap->layout(kind).segments(); s; s = s->next) {
        auto* own = static_cast<HeapSegment*>(s);
        if (own->whollyFree()) idle.push_back({own, heap, own->bytes, own->idleSince()});
      }
    }
  }
  return idle;
}

}  // namespace

// A segment that was idle a moment ago may be in use, gone or elsewhere by now. Its pool stays
// until it is back: it may be refused.
bool CachingAllocator::releaseOneIdle(HeapSegment& segment, Heap& heap) {
  std::shared_ptr<void> visiting;
  {
    const MutexLock lock(heap.mutex());
    if (segment.heap.load(std::memory_order_relaxed) != &heap || !segment.whollyFree())
      return false;
    if (pinned_segments_.pinned(segment)) return false;  // asked last: it was, before it was freed
    visiting = heap.pool().token();
    heap.remove(segment, true);
    ++heap.leaving;
  }
  return giveBack(segment, heap);
}

// The heaps whose idle segments may go to make room in a pool: its own, and nobody's in particular.
std::vector<Heap*> CachingAllocator::releasableFor(const Pool& pool) const {
  std::vector<Heap*> heaps = heaps_.all();
  std::erase_if(heaps, [&](const Heap* heap) { return !heap->pool().givesTo(pool, false); });
  return heaps;
}

// Gives back what cannot serve the request as it lies, but makes room for what would: idle
// segments, or, for a segment, pages. True when there was any.
bool CachingAllocator::releaseFor(const Request& request) {
  std::vector<Heap*> heaps = releasableFor(*request.pool);
  if (releaseIdle(heaps) > 0) return true;
  if (pages_ == nullptr || onPages(request)) return false;
  std::erase_if(heaps, [](const Heap* heap) { return !heap->onPages(); });
  return pages_->release(heaps, request.pool->rules().segmentFor(request)) > 0;
}

// Gives idle segments back, until at least `most` bytes are. Returns the bytes.
std::uint64_t CachingAllocator::releaseIdle(const std::vector<Heap*>& heaps, std::uint64_t most) {
  std::uint64_t released = 0;
  for (Heap* heap : heaps) released += discardRefused(*heap);
  for (const Idle& one : idleSegments(heaps)) {
    if (released >= most) break;
    if (releaseOneIdle(*one.segment, *one.heap)) released += one.bytes;
  }
  return released;
}

void CachingAllocator::emptyCache() {
  takeCachesBack();
  (void)tidyPools(Tidying::kEmptyCache);
  pollPending();
  pending_.waitForStuck();
  if (pages_) pages_->emptyCache(heaps_.all());
  releaseIdle(heaps_.all());
}

// Above the threshold, gives back what has been idle for at least the mean time, oldest first,
// until below it.
void CachingAllocator::collectGarbage() {
  const auto threshold = std::uint64_t(options_.garbage_collection_threshold * double(limit()));
  if (pages_) pages_->collectGarbage(threshold);
  const auto above = [&] { return limit_.reserved() > threshold; };
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

// In a child of fork nothing is: no lock can be had for sure, and the device is the parent's.
CachingAllocator::~CachingAllocator() {
  if (!made_.isHere()) {
    new (this) CachingAllocator(device_, Options{}, CacheTable::Limits{});
    return;
  }
  const bool driver = driverMayBeCalled();
  if (pages_) pages_->stop();
  takeCachesBack();
  for (Heap* heap : heaps_.all()) {
    const MutexLock lock(heap->mutex());
    for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
      for (Segment* s = heap->layout(kind).segments(); s; s = s->next) {
        forgetUses(*s);
        if (driver && !heap->onPages()) leave(static_cast<HeapSegment&>(*s), heap->pool());
      }
    }
    for (const Segment* s = heap->refused; driver && s; s = s->next)
      leave(static_cast<const HeapSegment&>(*s), heap->pool());
  }
  if (pages_) pages_->shutDown(driver);
}

void CachingAllocator::forgetUses(const Segment& segment) noexcept {
  for (const Block* b = segment.first; b; b = b->next) {
    if (b->state() == BlockState::kAllocated) delete usesOf(*b);
  }
}

// Nobody can ask for it again later, so a device that says no is asked once more.
void CachingAllocator::leave(const HeapSegment& segment, const Pool& pool) noexcept {
  const auto give = [&] { return returnToDevice(segment.device_base, segment.bytes, pool).ok(); };
  if (!give()) (void)give();
}

}  // namespace cistern
