#include "allocator/engine/capture/live_capture.hpp"

#include <mutex>
#include <new>
#include <utility>

#include "allocator/base/thread_number.hpp"
#include "allocator/engine/engine.hpp"
#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/engine/exchange/exchange.hpp"

namespace cistern {
LiveCapture::LiveCapture(Engine& engine, Pool& pool, Stream origin)
    : engine_(engine),
      pool_(pool),
      token_(pool.token()),
      origin_(origin),
      number_(nextCaptureNumber()),
      streams_(engine.device, engine.streams, pool),
      waiting_(streams_) {}

// ---- Which streams it records -------------------------------------------------------------------

namespace {

bool aboutCaptures(ErrorKind kind) {
  return kind == ErrorKind::kCaptureForbidden || kind == ErrorKind::kCaptureInvalidated;
}

}  // namespace

// Asks a device that says no once more.
static Result<CaptureInfo> askTwice(Device& device, Stream stream) {
  const Result<CaptureInfo> info = device.captureInfo(stream);
  return info || info.error().kind == ErrorKind::kInvalidHandle ? info : device.captureInfo(stream);
}

std::uint64_t LiveCapture::idOf(Stream stream) const {
  const Result<CaptureInfo> info = askTwice(engine_.device, stream);
  return info ? info.value().id : 0;
}

// If the device does not say, what was seen before holds. Memory that the graph uses must not come
// from elsewhere: nothing would keep it in place. A device that forbids the question, as of the
// legacy stream beside a capture, records nothing there.
std::uint32_t LiveCapture::partOf(Stream stream) {
  const Result<CaptureInfo> info = askTwice(engine_.device, stream);
  if (!info && info.error().kind == ErrorKind::kInvalidHandle) return 0;
  const CaptureInfo now = info ? info.value() : CaptureInfo{CaptureStatus::kInvalidated, 0};
  const MutexLock lock(mutex_);
  if (over_) return 0;
  CapturedStreams::Seen* const of = streams_.captured(stream, now);
  if (now.status != CaptureStatus::kInvalidated) {
    CapturedStreams::Seen* const before = of ? of : streams_.seen(stream);
    if (before && before->part && (!of || of->part->id != now.id)) leavePart(*before);
    if (of && of->part == nullptr) streams_.beginPart(*of, now.id);
  }
  if (!info && !aboutCaptures(info.error().kind) && streams_.seen(stream) == nullptr)
    throw DeviceFailure(info.error());
  if (of == nullptr) return 0;
  return of->part ? of->part->number : number_;
}

// Memory that the stream has used or freed until now is for the part that it no longer records. It
// is for no other part, nor for other work in the pool. Such work would give it back as memory that
// no part has used.
void LiveCapture::leavePart(CapturedStreams::Seen& of) {
  for (const bool overflow : {false, true})
    waiting_.keepApart(of.stream, pool_.heapWith(of.stream, overflow));
  of = {of.stream, of.included};
}

// ---- Memory -------------------------------------------------------------------------------------

// A block that was not allocated in the capture has been used by work that is queued, not captured.
// It is free when that is complete. Until then it must not lie beside what the capture frees. A
// wrong free is reported without a lock.
bool LiveCapture::free(Heap& heap, const HeapSegment& segment, Address address,
                       const void* caller) noexcept {
  Block* block = nullptr;
  StreamUses users;
  bool ours = false;
  {
    const MutexLock lock(mutex_);
    if (over_) return false;
    streams_.beginFree();
    CapturedStreams::Seen* present = nullptr;
    {
      const MutexLock heap_lock(heap.mutex());
      block = heap.find(segment, address);
      if (block != nullptr) {
        heap.frees().note(address, block->granules, caller, threadNumber());
        ours = streams_.allocated(*block);
        present = streams_.allocating(*block);
        if (present && block->use.uses == nullptr && present->stream == heap.stream()) {
          heap.release(*block, engine_.now());
        } else {
          users = heap.setPending(*block);
          users.add(ours ? block->use.stream : heap.stream());
        }
      }
    }
    if (ours && !users.empty()) waiting_.add(*block, users, present != nullptr);
    if (present && users.size() <= 1 && engine_.options.reusesAcrossStreams())
      streams_.noteFree(*present);
  }
  if (block == nullptr) {
    reportMisuse(engine_, "free", address);
  } else if (!ours) {
    deferFree(engine_, *block, users, true);
  }
  return true;
}

void LiveCapture::bind(const Block& block) {
  const MutexLock lock(mutex_);
  if (over_) return;  // the graph is made without it
  engine_.hold(block, footprint_, number_);
}

void LiveCapture::learn(Heap& heap) {
  const MutexLock lock(mutex_);
  if (over_) return;
  const MutexLock heap_lock(heap.mutex());
  Completion& known = heap.completion();
  if (known.captured() == number_) return;
  (void)heap.endedEpoch();
  known.beginCapture(number_);
}

Block* LiveCapture::take(Heap& heap, const Request& request) {
  const MutexLock lock(mutex_);
  CapturedStreams::Seen* const by = streams_.beginRequest(request.stream);
  if (over_ || by == nullptr || !engine_.options.reusesAcrossStreams()) return nullptr;
  if (Block* block = waiting_.take(request)) return block;
  if (waiting_.putBack(heap, *by, engine_.now())) {
    const MutexLock heap_lock(heap.mutex());
    if (Block* block = heap.allocate(request)) return block;
  }
  return takeFree(heap, request);
}

// Free memory of the capture's other streams: as a loan, until it is freed.
Block* LiveCapture::takeFree(const Heap& heap, const Request& request) {
  for (Heap* owner : pool_.heaps()) {
    CapturedStreams::Seen* const of = streams_.seen(owner->stream());
    if (owner == &heap || owner->overflow() != heap.overflow() || of == nullptr) continue;
    {
      const MutexLock lock(owner->mutex());
      if (bestFree(*owner, request, {}) == nullptr) continue;
    }
    if (streams_.followed(*of) == 0) continue;
    const MutexLock lock(owner->mutex());
    Block* const free = bestFree(*owner, request, streams_.epochsFollowed(*of, *owner));
    if (free != nullptr) return owner->allocateFrom(*free, request);
  }
  return nullptr;
}

// ---- Beginning and ending -----------------------------------------------------------------------

// Free memory that queued work may still use waits, as if it were freed only now. A miss that takes
// such memory from elsewhere has it in the heap by now, or learns that it may not.
void LiveCapture::begin(Heap& heap) {
  std::vector<Block*> blocks;
  {
    const MutexLock still(engine_.pages.mutex());
    const MutexLock lock(heap.mutex());
    blocks = incompleteBlocks(heap);
    (void)heap.endedEpoch();
    heap.completion().beginCapture(number_);
    for (Block* block : blocks) heap.setAside(*block);
  }
  for (Block* block : blocks) deferToAll(engine_, *block);
}

// While a capture into a pool is under way, free memory in the pool is complete, or was freed by
// the capture. So a stream that joins later may take it, and it does no harm that the two coalesce.
// Memory that comes back into the pool meanwhile is held to that too: see putBack in
// exchange/deferral.cpp. Pages go home first: what captures have in common then needs the same
// windows, which are mapped.
void LiveCapture::prepare(Stream origin) {
  flushCaches(engine_);
  const auto refresh = [&](Heap& heap) {  // while it can be asked: a captured stream does not tell
    heap.stream() == origin ? engine_.progress.refresh(heap)
                            : engine_.progress.refreshByEvent(heap);
  };
  pool_.forEachHeap(refresh);
  HeapTable::Search search{pool_, HeapTable::From::kGivers};
  while (Heap* heap = engine_.heaps.nextOffering(search)) {
    if (&heap->pool() != &pool_) refresh(*heap);
  }
  engine_.streams.captureBegins(origin);
  engine_.progress.captureBegins();
  try {
    pool_.setCapture(shared_from_this());
    for (Heap* heap : pool_.heaps()) {
      begin(*heap);
      if (heap->onPages()) atLowWater(engine_, *heap);
    }
  } catch (...) {
    (void)end();
    throw;
  }
}

// Blocks that the capture has allocated, and that are in use at its end.
void LiveCapture::noteResults(Heap& heap) noexcept try {
  const MutexLock lock(heap.mutex());
  forEachBlock(heap, [&](const Block& block) {
    mutex_.assertHeld();
    if (block.state() != BlockState::kAllocated || !streams_.allocated(block)) return;
    const Address at = deviceAddress(block);
    footprint_.results.push_back({at, at + block.bytes()});
  });
} catch (const std::bad_alloc&) {
  footprint_.all_results = true;
}

// If work still uses a mapping that a page has left, only the free blocks are marked complete, not
// the epochs.
void LiveCapture::end(Heap& heap) noexcept {
  const MutexLock still(engine_.pages.mutex());
  const MutexLock lock(heap.mutex());
  Completion& known = heap.completion();
  if (!known.endCapture(number_)) return;  // a stream has come in at this moment, with nothing
  known.leftInUseBefore() ? noteFreeComplete(heap) : known.noteComplete(heap.endedEpoch());
}

// Under the capture's lock the capture ends for all heaps: a free comes before or after, never
// halfway. Work that the capture captured has not run, so nothing waits for it. But other work,
// queued on streams that it did not record, may have used a block.
Footprint LiveCapture::end() noexcept {
  engine_.progress.captureEnds();
  engine_.streams.captureEnds(origin_);
  Footprint touched;
  WaitingFrees::Left left;
  {
    const MutexLock lock(mutex_);
    over_ = true;
    pool_.forEachHeap([&](Heap& heap) {
      mutex_.assertHeld();
      noteResults(heap);
    });
    streams_.clear();
    left = waiting_.takeAll();
    touched = std::exchange(footprint_, {});
    pool_.forEachHeap([&](Heap& heap) { end(heap); });
  }
  pool_.setCapture(nullptr);
  while (Block* block = left.free.pop()) putBack(engine_, {block});
  for (const auto& [block, streams] : left.outside) deferFree(engine_, *block, streams);
  while (Block* block = left.unknown.pop()) engine_.pending.addUnknown(*block);
  return touched;
}

}  // namespace cistern
