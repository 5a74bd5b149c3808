// Segments from the device. See segment_backing.hpp.
#include "allocator/engine/backing/segment_backing.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/base/supplied.hpp"
#include "allocator/engine/core/pool.hpp"
#include "cistern/error.hpp"

namespace cistern {

// ---- What is held -------------------------------------------------------------------------------

void SegmentBacking::hold(const Block& block, HeldMemory& by, HoldCounts::Kind kind,
                          std::uint32_t capture) {
  DeviceSegment& segment = deviceSegmentOf(segmentOf(block));
  const MutexLock lock(mutex_);
  if (capture != 0 && segment.capture == capture) return;
  by.segments.push_back(&segment);
  if (capture != 0) segment.capture = capture;
  ++(segment.holds.*kind);
}

// The heap's lock keeps the segment from leaving it.
bool SegmentBacking::hold(HeapSegment& segment, Heap& heap, AddressRange what, FixedHold& by) {
  const MutexLock heap_lock(heap.mutex());
  if (segment.heap.load(std::memory_order_relaxed) != &heap || !segment.covers(what.from) ||
      !segment.covers(what.to - 1))
    return false;
  const MutexLock lock(mutex_);
  by.segments.push_back(&segment);
  if (deviceSegmentOf(segment).holds.fixed++ == 0) held_bytes_ += segment.bytes;
  return true;
}

void SegmentBacking::letGo(HeldMemory& by, HoldCounts::Kind kind) noexcept {
  const MutexLock lock(mutex_);
  for (HeapSegment* held : by.segments) {
    DeviceSegment& segment = deviceSegmentOf(*held);
    --(segment.holds.*kind);
    if (kind == FixedHold::kKind && segment.holds.fixed == 0) held_bytes_ -= segment.bytes;
    if (segment.holds.graphs == 0) segment.capture = 0;
  }
  by.segments.clear();
}

bool SegmentBacking::isHeld(const Block& block) const {
  const MutexLock lock(mutex_);
  return heapOf(block).pool().isHeld() || deviceSegmentOf(segmentOf(block)).holds.any();
}

// ---- From the device ----------------------------------------------------------------------------

// Whether the segment begins so that the request's block fits at its alignment. A wide one does.
static bool begins(const HeapSegment& segment, const Request& request) {
  return request.slack == 0 ||
         roundUp(segment.device_base, request.alignment()) + request.rounded() <=
             segment.deviceEnd();
}

// A source says nothing of where its segments begin. So one is asked for with room for the
// alignment, rather than for one that may go back: others may count on the order of its calls.
// Devices give 2 MiB, as a rule.
Block* SegmentBacking::grow(Heap& heap, const Request& request, bool tightly) {
  const bool wide = request.slack != 0 && request.pool->source() != nullptr;
  return grow(heap, request, tightly, wide);
}

// An exception of a source is the program's own, and leaves the verb. The record comes before the
// memory. Without one nobody would know of memory that the device will not take back.
Block* SegmentBacking::grow(Heap& heap, const Request& request, bool tightly, bool wide) {
  if (memoryFor(request) != MemoryKind::kSegments)
    return nullptr;  // host memory comes in pages alone
  const std::uint64_t usual = request.pool->rules().segmentFor(request, wide);
  const std::uint64_t least = bytesOf(wide ? request.enough() : request.granules);
  const std::uint64_t bytes = tightly ? roundUp(least, kSegmentUnit) : usual;
  if ((tightly && bytes >= usual) || !core_.limit.admit(bytes)) return nullptr;
  DeviceSegment* segment = nullptr;
  const auto giveUp = [&] {
    if (segment) records_.recycle(*segment);
    core_.limit.noteReturned(bytes);
  };
  Result<Address> base = DeviceError{};
  try {
    segment = &records_.take();
    segment->exported.reset();
    const std::shared_ptr<SegmentSource> source = request.pool->source();
    const RelaxedCaptureMode relaxed(core_.device);
    base = source ? source->allocate(bytes, request.stream) : core_.device.malloc(bytes);
  } catch (...) {
    giveUp();
    throw;
  }
  core_.answers.note(base);
  if (!base) {
    giveUp();
    return nullptr;
  }
  segment->bytes = bytes;
  segment->device_base = base.value();
  const char* broken = brokenPromise(base.value(), bytes);
  if (broken == nullptr && !begins(*segment, request)) {
    if (insist([&] { return returnToDevice(*segment, *request.pool); })) {
      giveUp();
      return grow(heap, request, tightly, true);
    }
    Request plain = request;  // the heap keeps it, free
    plain.slack = 0;
    if (Block* const block = install(*segment, heap, plain)) {
      const MutexLock lock(heap.mutex());
      heap.release(*block, core_.now());
      return nullptr;
    }
    broken = "is memory of this allocator already";
  } else if (broken == nullptr) {
    if (Block* const block = install(*segment, heap, request)) return block;
    broken = "is memory of this allocator already";
  } else if (base.value() != 0) {
    (void)insist([&] { return returnToDevice(*segment, *request.pool); });
  }
  giveUp();
  refuse(*request.pool, base.value(), bytes, broken);
}

// Memory that is the allocator's already stays: to give it back would take it from its blocks.
void SegmentBacking::refuse(const Pool& pool, Address address, std::uint64_t bytes,
                            const char* broken) {
  const MempoolId_t id = pool.id();
  const bool own = pool.source() != nullptr;
  const std::string text = fmt::format(
      "{} returned {:#x} for {} bytes, which {}. It must return an error, or memory at a multiple "
      "of 512, below 2^57, that no block of this allocator has",
      own ? fmt::format("the SegmentSource of pool {{{}, {}}}", id.uuid, id.uid) : "the device",
      address, bytes, broken);
  if (own) throw PoolError(text);
  throw DeviceFailure({Call::kMalloc, ErrorKind::kOther, 0, "broken promise", text});
}

void SegmentBacking::noteTaken(HeapSegment& segment, const Heap& heap) noexcept {
  deviceSegmentOf(segment).number = taken_.fetch_add(1, std::memory_order_relaxed);
  note(core_.log, MemoryAction::kSegmentAlloc, segment.device_base, segment.bytes, heap);
}

namespace {

MemoryNotice noticeOf(const HeapSegment& segment, const Heap& heap) {
  MemoryNotice notice;
  notice.address = segment.device_base;
  notice.bytes = segment.bytes;
  notice.stream = heap.stream();
  notice.pool = heap.pool().id();
  return notice;
}

}  // namespace

void SegmentBacking::noteMoved(const HeapSegment& segment, const Heap& to) {
  core_.memory_hooks.joined(noticeOf(segment, to));
}

// If the host is short of memory, hooks that came meanwhile do not hear of it.
void SegmentBacking::tellJoined(const HeapSegment& segment, const Heap& owner) noexcept try {
  noteMoved(segment, owner);
} catch (const std::bad_alloc&) {
}

void SegmentBacking::tellPresent(Heap& heap) {
  const MutexLock lock(heap.mutex());
  if (heap.onPages()) return;
  forEachSegment(heap, [&](const HeapSegment& segment) {
    core_.memory_hooks.addPresent(noticeOf(segment, heap));
  });
}

// After the older ones, or before them.
Address SegmentBacking::takePlace(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const Address place = places_.take(bytes);
  return core_.options.prefer_old_segments ? place : places_.mirrored(place, bytes);
}

void SegmentBacking::freePlace(const HeapSegment& segment) noexcept {
  const MutexLock lock(mutex_);
  const bool older = core_.options.prefer_old_segments;
  places_.free(older ? segment.base : places_.mirrored(segment.base, segment.bytes));
}

// If host memory runs out, it is as if the device had refused. Once the heap has the segment, it is
// as if the segment had been there, free, before. If the allocator has the memory already, null is
// returned, and nothing has changed.
Block* SegmentBacking::install(HeapSegment& segment, Heap& heap, const Request& request) {
  bool mapped = false, added = false;
  try {
    segment.base = 0;  // a place of none, until it has one
    segment.base = takePlace(segment.bytes);
    segment.kind = request.kind;
    if (!core_.map.insert(segment)) {
      freePlace(segment);
      return nullptr;
    }
    mapped = true;
    noteTaken(segment, heap);
    const MutexLock lock(heap.mutex());
    const bool heard = core_.memory_hooks.on();
    if (heard) core_.memory_hooks.expect(noticeOf(segment, heap));
    heap.add(segment, Heap::From::kDevice);
    added = true;
    if (heard) core_.memory_hooks.came(segment.device_base);
    return heap.allocateFrom(*segment.first, request);
  } catch (...) {
    if (added) throw;
    mapped ? core_.map.erase(segment) : noteTaken(segment, heap);
    {
      const MutexLock lock(heap.mutex());
      heap.leaving().begin();
    }
    (void)giveBack(segment, heap, false);
    throw;
  }
}

// ---- Back to the device -------------------------------------------------------------------------

// Those of the heaps that lie wholly free, and that nobody holds.
std::vector<SegmentBacking::Idle> SegmentBacking::idleSegments(
    const std::vector<Heap*>& heaps) const {
  std::vector<Idle> idle;
  for (Heap* heap : heaps) {
    if (heap->onPages()) continue;
    const MutexLock lock(heap->mutex());
    forEachSegment(*heap, [&](HeapSegment& own) {
      if (own.whollyFree() && !isHeld(*own.first))
        idle.push_back({&own, heap, own.bytes, own.idle_since});
    });
  }
  return idle;
}

// A source that throws has refused.
Status SegmentBacking::returnToDevice(const HeapSegment& segment, const Pool& pool) noexcept try {
  const std::shared_ptr<SegmentSource> source = pool.source();
  const RelaxedCaptureMode relaxed(core_.device);
  return source ? source->free(segment.device_base, segment.bytes)
                : core_.device.free(segment.device_base);
} catch (...) {
  return DeviceError{Call::kFree, ErrorKind::kOther, 0, "thrown", {}};
}

// Returns one segment, which no heap places blocks in, to the device. The owner counts it as
// leaving, and so stays in its pool meanwhile. If the device will not take it, it stays with the
// owner. If it was the heap's free memory, it is that again. Otherwise it is offered to the device
// again later. The log notes the segment before it goes. From then on another thread may have the
// address, and note that it does.
std::uint64_t SegmentBacking::giveBack(HeapSegment& segment, Heap& owner, bool was_there) {
  MemoryHooks& hooks = core_.memory_hooks;
  if (was_there) core_.map.erase(segment);
  if (!hooks.on()) return giveBackNow(segment, owner, was_there);
  const std::uint64_t bytes = segment.bytes;
  DeviceSegment& own = deviceSegmentOf(segment);
  own.withdrawn = {&owner, was_there, owner.pool().token()};
  if (hooks.withdraw(segment.device_base, *this, &own)) return bytes;
  own.withdrawn = {};
  return giveBackNow(segment, owner, was_there);
}

// The pool goes last of all, without a lock.
void SegmentBacking::finish(void* range) noexcept {
  DeviceSegment& segment = *static_cast<DeviceSegment*>(range);
  const DeviceSegment::Withdrawn of = std::exchange(segment.withdrawn, {});
  (void)giveBackNow(segment, *of.owner, of.was_there);
}

std::uint64_t SegmentBacking::giveBackNow(HeapSegment& segment, Heap& owner, bool was_there) {
  MemoryHooks& hooks = core_.memory_hooks;
  const std::uint64_t bytes = segment.bytes;
  MemoryHooks::Ranges::node_type record;
  if (hooks.on()) record = hooks.takeOut(segment.device_base);
  note(core_.log, MemoryAction::kSegmentFree, segment.device_base, bytes, owner);
  const Status freed = returnToDevice(segment, owner.pool());
  if (freed) {
    returned_.fetch_add(1, std::memory_order_relaxed);
    core_.limit.noteReturned(bytes);
    hooks.gone(std::move(record));
  } else {
    note(core_.log, MemoryAction::kSegmentAlloc, segment.device_base, bytes, owner);
    hooks.stays(std::move(record));
    core_.answers.note(freed);
    // Its leaves exist. But a source may have given the memory to another pool meanwhile.
    if (was_there) was_there = core_.map.insert(segment);
  }
  {
    const MutexLock lock(owner.mutex());
    if (!freed && !was_there) {
      owner.leaving().refuse(segment);
      return 0;
    }
    owner.leaving().end();
    if (!freed) {
      owner.add(segment, Heap::From::kRefused);
      tellJoined(segment, owner);
    }
  }
  if (!freed) return 0;
  if (segment.base != 0) freePlace(segment);
  records_.recycle(deviceSegmentOf(segment));
  return bytes;
}

std::uint64_t SegmentBacking::giveBackRefused(Heap& heap) {
  const auto next = [&heap] {
    const MutexLock lock(heap.mutex());
    return heap.leaving().takeRefused();
  };
  std::uint64_t released = 0;
  while (HeapSegment* const segment = next()) {
    const std::uint64_t bytes = giveBack(*segment, heap, false);
    if (bytes == 0) break;
    released += bytes;
  }
  return released;
}

// A segment that was idle a moment ago may be in use, gone or elsewhere by now. Its pool stays
// until the device has it back, as the device may refuse it.
std::uint64_t SegmentBacking::releaseOneIdle(HeapSegment& segment, Heap& heap) {
  std::shared_ptr<void> visiting;
  {
    const MutexLock lock(heap.mutex());
    if (segment.heap.load(std::memory_order_relaxed) != &heap || !segment.whollyFree()) return 0;
    if (isHeld(*segment.first)) return 0;  // asked last: it was, before it was freed
    visiting = heap.pool().token();
    heap.remove(segment, true);
    heap.leaving().begin();
  }
  return giveBack(segment, heap, true);
}

std::uint64_t SegmentBacking::release(const std::vector<Heap*>& heaps, std::uint64_t bytes,
                                      std::uint64_t until) {
  std::uint64_t released = 0;
  for (Heap* heap : heaps) released += giveBackRefused(*heap);
  for (const Idle& one : idleSegments(heaps)) {
    if (released >= bytes) break;
    if (one.since > until) continue;
    released += releaseOneIdle(*one.segment, *one.heap);
  }
  return released;
}

std::uint64_t SegmentBacking::releasableBytes(const std::vector<Heap*>& heaps) const {
  std::uint64_t bytes = 0;
  for (const Idle& one : idleSegments(heaps)) bytes += one.bytes;
  return bytes;
}

void SegmentBacking::collectGarbage(const std::vector<Heap*>& heaps, std::uint64_t bytes) {
  std::vector<Idle> idle = idleSegments(heaps);
  if (idle.empty()) return;
  const std::uint64_t now = core_.now();
  std::uint64_t total_age = 0;
  for (const Idle& one : idle) total_age += now - one.since;
  const std::uint64_t mean_age = total_age / idle.size();
  const std::uint64_t reserved = core_.limit.reserved();
  std::uint64_t released = 0;  // some go only when hooks have heard of it
  std::ranges::sort(idle, {}, &Idle::since);
  for (const Idle& one : idle) {
    if (reserved - released <= bytes || now - one.since < mean_age) return;
    released += releaseOneIdle(*one.segment, *one.heap);
  }
}

void SegmentBacking::leave(Heap& heap) noexcept CISTERN_NO_TSA {
  const auto give = [&](const Segment& segment) {
    const auto& own = static_cast<const HeapSegment&>(segment);
    if (!isRange(own)) insist([&] { return returnToDevice(own, heap.pool()); });
  };
  for (const Segment* s = heap.leaving().refused(); s; s = s->next) give(*s);
  if (!heap.onPages()) forEachSegment(heap, give);
}

}  // namespace cistern
