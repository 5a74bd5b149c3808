#include "allocator/engine/pages/mover.hpp"

#include <algorithm>
#include <utility>

#include "allocator/engine/heap_locks.hpp"
#include "allocator/engine/pages/parking.hpp"

namespace cistern::pages {

// A window between blocks may be too narrow for the pages there are; at the end of the range there
// is room for all. Where this stream could not be made to wait for another it grows.
Block* Mover::serve() {
  began_ns_ = ground_.device.hostNanoseconds();
  waits_ = ground_.options.cross_stream_reuse == CrossStreamReuse::kWait &&
           from_ != PagesFrom::kLenders && request_.recording == nullptr && !captured();
  if (Block* block = attempt(false)) return block;
  if (std::exchange(waits_, false) && unordered_) {
    if (Block* block = attempt(false)) return block;
  }
  return page_too_large_ && !without(Mechanism::kFreshWindow) ? attempt(true) : nullptr;
}

Block* Mover::attempt(bool fresh_only) {
  pressed_ = unordered_ = false;
  {
    const MutexLock lock(heap_.mutex());
    if (Block* block = heap_.allocate(request_)) return block;  // another thread has made room
    auto window = findWindow(fresh_only);
    // What lies aside comes before anything that takes a call.
    if ((!window || window->units_to_map > 0) && bringBack(ground_, heap_, number_)) {
      brought_ = true;
      heap_.lowWater().notePagesMoved();  // there is something to do at the next low water
      if (Block* block = heap_.allocate(request_)) return block;
      window = findWindow(fresh_only);
    }
    if (!window) return nullptr;
    backed_before_ = heap_.layout(request_.kind).segmentBytes();
    made_late_ = heap_.pool().isDefault() && heap_.lowWater().wasReached();
    reserve(*window);
  }
  try {
    if (gather() && mapAll()) {
      Block* const block = commit();
      putUnusedAside();
      return block;
    }
  } catch (...) {
    undo();
    throw;
  }
  undo();
  return nullptr;
}

// What the miss had no use for. Where the host is short of memory it stays.
void Mover::putUnusedAside() noexcept {
  if (!brought_ || without(Mechanism::kParkingAgain)) return;
  const MutexLock lock(heap_.mutex());
  try {
    putAside(ground_, heap_, number_);
  } catch (const std::bad_alloc&) {
  }
}

// The memory was the heap's, or another's, or new: `reserved` must not be seen in between.
Block* Mover::commit() {
  noteCost();
  std::vector<Heap*> heaps{&heap_};
  for (const Step& step : steps_) {
    if (Heap* const source = step.page->counted_by) heaps.push_back(source);
  }
  const MutexLock holding_several(ground_.heaps_mutex);
  const HeapLocks locks(ground_.heaps_mutex, heaps);
  heap_.mutex().assertHeld();
  heap_.layout(request_.kind)
      .prepareHoles(2);  // the window, and the block: the last that may throw
  std::uint32_t epoch = 0;
  for (const Piece& piece : pieces_) {
    epoch = std::max(epoch, piece.epoch);
    heap_.layout(request_.kind).endReserve();
  }
  for (Step& step : steps_) {
    epoch = std::max(epoch, step.epoch);
    commitStep(step);
    window_.to = std::max(window_.to, step.to->placeEnd());  // a page may reach further
  }
  Block& hole = holeAt(heap_, *window_.range, window_.from);
  Block* free = heap_.fill(request_.kind, hole, window_.from, window_.to,
                           std::min(epoch, heap_.completion().now().epoch));
  std::uint64_t& most = window_.range->most_backed;
  most = std::max(most, heap_.layout(request_.kind).segmentBytes());
  if (!steps_.empty()) heap_.lowWater().notePagesMoved();
  heap_.lowWater().rise(heap_.busyBytes());
  return heap_.allocateFrom(*free, request_);
}

void Mover::commitStep(Step& step) noexcept {
  if (step.source != nullptr) {
    step.source->mutex().assertHeld();
    step.source->layout(step.from->range->kind).endReserve();
    ground_.table.makeStale(*step.from);
    (step.revived ? ground_.counters.revived : ground_.counters.recycled)++;
  } else if (step.revived) {
    ++ground_.counters.revived;
  }
  ground_.table.makeCurrent(*step.to);
  ground_.count(*step.page, &heap_, request_.kind);
}

}  // namespace cistern::pages
