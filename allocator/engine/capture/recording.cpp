#include "allocator/engine/capture/recording.hpp"

#include <algorithm>

#include "allocator/engine/engine.hpp"

namespace cistern {
namespace {

bool hasFree(Heap& owner, const Request& request) {
  const MutexLock lock(owner.mutex());
  return bestFree(owner, request, {}) != nullptr;
}

// That of the stream which has the handle, or of one that had it and is gone: the next gets it.
Heap* heapWith(const Pool& pool, Stream handle) {
  const std::vector<Heap*> heaps = pool.heaps();
  const auto it = std::ranges::find(heaps, handle, &Heap::stream);
  return it != heaps.end() ? *it : nullptr;
}

}  // namespace

Recording::Recording(Engine& engine, Pool& pool)
    : engine_(engine),
      pool_(pool),
      token_(pool.token()),
      number_(nextRecording()),
      streams_(engine.device, engine.streams, pool, number_),
      waiting_(streams_) {}

void Recording::begin(Stream origin, std::uint64_t id) {
  const MutexLock lock(mutex_);
  streams_.begin(origin, id);
}

void Recording::include(Stream stream) {
  const MutexLock lock(mutex_);
  streams_.include(stream);
}

std::uint32_t Recording::numberOf(Stream stream) {
  const MutexLock lock(mutex_);
  return streams_.numberOf(stream);
}

// A device that says no is asked once more; then what was seen before holds. What the graph uses
// must not come from elsewhere: nothing would keep it in place.
bool Recording::covers(Stream stream) {
  Result<CaptureInfo> info = engine_.device.captureInfo(stream);
  if (!info && info.error().kind != ErrorKind::kInvalidHandle)
    info = engine_.device.captureInfo(stream);
  if (!info && info.error().kind == ErrorKind::kInvalidHandle) return false;
  const CaptureInfo now = info ? info.value() : CaptureInfo{CaptureStatus::kInvalidated, 0};
  const MutexLock lock(mutex_);
  if (over_) return false;
  const bool covered = streams_.records(stream, now);
  RecordedStreams::Seen* const of = streams_.seen(stream);
  if (of == nullptr || now.status == CaptureStatus::kInvalidated) return covered;
  const bool same = covered && of->part && of->part->id == now.id;
  if (of->part != nullptr && !same) endPart(*of);
  if (covered && !same) streams_.beginPart(*of, now.id);
  return covered;
}

// What the stream has used or freed until now is for the part that it does not record any more:
// also not for other work in the pool, which would give it back as memory that no part has used.
void Recording::endPart(RecordedStreams::Seen& of) {
  waiting_.keepApart(of.stream, heapWith(pool_, of.stream));
  RecordedStreams::endPart(of);
}

Recording::Freed Recording::free(Heap& heap, const HeapSegment& segment, Address address,
                                 const void* caller) noexcept {
  const MutexLock lock(mutex_);
  if (over_) return {Freed::How::kOver, nullptr, {}};
  Freed freed;
  RecordedStreams::Seen* of = nullptr;
  bool ours = false, present = false;
  {
    const MutexLock heap_lock(heap.mutex());
    Block* const block = freed.block = heap.find(segment, address);
    if (block == nullptr) return {Freed::How::kNotHeld, nullptr, {}};
    heap.frees().note(address, block->granules, caller, threadNumber());
    of = streams_.seen(block->use.stream);
    ours = streams_.allocated(*block);
    present = ours && of && of->part && of->part->number == block->epoch;
    if (present && block->use.uses == nullptr && of->stream == heap.stream()) {
      heap.release(*block, engine_.now());
    } else {
      freed.users = heap.setPending(*block);
      freed.users.add(ours ? block->use.stream : heap.stream());
    }
  }
  if (!ours) freed.how = Freed::How::kFromBefore;
  if (ours && !freed.users.empty()) waiting_.add(*freed.block, freed.users, present);
  if (present && freed.users.size() <= 1 && engine_.options.reusesAcrossStreams())
    streams_.noteFree(*of);
  return freed;
}

Recording::Left Recording::finish() noexcept {
  over_ = true;
  streams_.clear();
  return waiting_.takeAll();
}

Block* Recording::take(Heap& heap, const Request& request) {
  const MutexLock lock(mutex_);
  if (over_ || !engine_.options.reusesAcrossStreams()) return nullptr;
  if (Block* block = waiting_.takeOwn(request)) return block;
  RecordedStreams::Reach reach;
  if (!mayFind(heap, request) || !streams_.reachOf(request.stream, reach)) return nullptr;
  waiting_.putBack(heap, reach, engine_.now());
  {
    const MutexLock heap_lock(heap.mutex());
    if (Block* block = heap.allocate(request)) return block;
  }
  if (Block* block = waiting_.take(request, reach)) return block;
  return takeFree(heap, request, reach);
}

// Whether anything waits that could serve the request, or is the heap's; or other heaps have it.
bool Recording::mayFind(const Heap& heap, const Request& request) {
  if (waiting_.mayServe(heap, request)) return true;
  return std::ranges::any_of(
      pool_.heaps(), [&](Heap* owner) { return owner != &heap && hasFree(*owner, request); });
}

// Free memory of the capture's other streams: as a loan, until it is freed.
Block* Recording::takeFree(const Heap& heap, const Request& request,
                           const RecordedStreams::Reach& reach) {
  for (Heap* owner : pool_.heaps()) {
    RecordedStreams::Seen* const of = streams_.seen(owner->stream());
    if (owner == &heap || of == nullptr || !hasFree(*owner, request)) continue;
    streams_.markForOthers(*of);
    const MutexLock lock(owner->mutex());
    Block* const free = bestFree(*owner, request, streams_.followed(*owner, reach));
    if (free != nullptr) return owner->allocateFrom(*free, request);
  }
  return nullptr;
}

}  // namespace cistern
