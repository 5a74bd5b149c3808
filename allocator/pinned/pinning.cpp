// Pinning memory of the system and giving it back. Blocks are allocated and freed meanwhile: either
// call may take as long as queued work does. Either is legal in a capture, in relaxed mode.
#include <new>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/supplied.hpp"
#include "allocator/pinned/pinned_memory.hpp"

namespace cistern {

void PinnedMemory::Segments::push(PinnedSegment& segment) noexcept {
  segment.next = std::exchange(first, &segment);
}
PinnedSegment* PinnedMemory::Segments::pop() noexcept {
  auto* const segment = static_cast<PinnedSegment*>(first);
  if (segment != nullptr) first = std::exchange(segment->next, nullptr);
  return segment;
}

bool PinnedMemory::claim(const Request& request) {
  Segments traded;
  {
    const MutexLock lock(mutex_);
    if (request.kind == unsigned(SizeKind::kLarge)) takeFree(request.kind, request.segment, traded);
  }
  giveBack(traded);
  const MutexLock lock(mutex_);
  const auto reserved = std::uint64_t(stats_.reserved_bytes.current);
  if (reserved > limit_ || request.segment > limit_ - reserved) return false;
  rise(stats_.reserved_bytes, request.segment);
  rise(stats_.segment, 1);
  return true;
}

void PinnedMemory::unclaim(std::uint64_t bytes) noexcept {
  const MutexLock lock(mutex_);
  fall(stats_.reserved_bytes, bytes);
  fall(stats_.segment, 1);
}

void* PinnedMemory::fromNew(const Request& request) {
  auto segment = std::make_unique<PinnedSegment>();
  if (!claim(request)) return nullptr;
  const auto pin = [&] {
    const RelaxedCaptureMode relaxed(device_);
    return device_.hostMalloc(request.segment);
  };
  Result<void*> memory = pin();
  if (memory) {
    if (const char* broken = brokenPromise(toAddress(memory.value()), request.segment)) {
      const RelaxedCaptureMode relaxed(device_);
      if (memory.value() != nullptr) (void)device_.hostFree(memory.value());
      memory = DeviceError{Call::kHostMalloc, ErrorKind::kOther, 0, "broken promise",
                           fmt::format("the device returned {}, which {}", memory.value(), broken)};
    }
  }
  if (!memory) {
    unclaim(request.segment);
    const MutexLock lock(mutex_);
    last_error_ = memory.error().message();
    return nullptr;
  }
  segment->base = toAddress(memory.value());
  segment->bytes = request.segment;
  segment->kind = request.kind;
  try {
    const MutexLock lock(mutex_);
    ++stats_.num_host_alloc;
    Layout& layout = layouts_[request.kind];
    layout.add(*segment, 0);
    PinnedSegment& added = *segment.release();
    return givenOut(*layout.allocateFrom(*added.first, request.granules), request);
  } catch (const std::bad_alloc&) {
    if (segment != nullptr) {
      Segments back;
      back.push(*segment.release());
      giveBack(back);
    }
    throw;
  }
}

void PinnedMemory::takeFree(unsigned kind, std::uint64_t bytes, Segments& taken) {
  Layout& layout = layouts_[kind];
  std::uint64_t sum = 0;
  for (Segment* segment = layout.segments(); segment != nullptr && sum < bytes;) {
    Segment* const next = segment->next;
    if (segment->whollyFree()) {
      sum += segment->bytes;
      layout.remove(*segment);
      taken.push(static_cast<PinnedSegment&>(*segment));
    }
    segment = next;
  }
}

void PinnedMemory::giveBack(Segments segments) noexcept {
  while (PinnedSegment* const segment = segments.pop()) {
    const auto unpin = [&] {
      const RelaxedCaptureMode relaxed(device_);
      return device_.hostFree(toPointer(segment->base));
    };
    const Status gone = unpin();
    const MutexLock lock(mutex_);
    if (!gone) {
      refused_.push(*segment);
      continue;
    }
    ++stats_.num_host_free;
    fall(stats_.reserved_bytes, segment->bytes);
    fall(stats_.segment, 1);
    delete segment;
  }
}

// The wait for a device comes first, so that it holds up nobody who pins memory.
void PinnedMemory::emptyCache() {
  if (!isHere()) return;
  if (uses_.waitForStuck()) noteWait();
  const MutexLock alone(system_mutex_);
  giveFreeBack();
}

void PinnedMemory::giveFreeBack() {
  uses_.poll(PendingFrees::kAll);
  Segments taken;
  {
    const MutexLock lock(mutex_);
    std::swap(taken, refused_);
    for (unsigned kind = 0; kind < layouts_.size(); ++kind) takeFree(kind, UINT64_MAX, taken);
  }
  giveBack(taken);
}

void PinnedMemory::noteWait() noexcept {
  const MutexLock lock(mutex_);
  ++stats_.num_waits;
}

bool PinnedMemory::waitForUses() noexcept {
  if (uses_.waiting() == 0) return false;
  noteWait();
  return uses_.wait();
}

PinnedMemory::~PinnedMemory() {
  if (!driverMayBeCalled()) return;
  const auto drop = [&](Segment* segment) {
    while (segment != nullptr) {
      Segment* const next = segment->next;
      (void)device_.hostFree(toPointer(segment->base));
      delete static_cast<PinnedSegment*>(segment);
      segment = next;
    }
  };
  for (Layout& layout : layouts_) drop(layout.segments());
  drop(refused_.first);
}

}  // namespace cistern
