#include "allocator/engine/pages/mover.hpp"

#include <algorithm>
#include <utility>

#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/map_calls.hpp"
#include "allocator/engine/pages/parking.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {
namespace {

/// Plain growth, which costs nobody too much: half of what PyTorch's expandable segments grow by.
constexpr double kPlainBytes = 10 * double(kMiB);

}  // namespace

// A window between blocks may be too narrow for the pages there are; at the end of the range there
// is room for all. Where this stream could not be made to wait for another it grows.
Block* Mover::serve() {
  began_ns_ = ground_.core.device.hostNanoseconds();
  const bool waits = ground_.core.options.cross_stream_reuse == CrossStreamReuse::kWait &&
                     from_ != PagesFrom::kLenders && request_.recording == nullptr &&
                     !sources_.captured();
  if (Block* block = attempt(false, waits)) return block;
  if (waits && sources_.unordered()) {
    if (Block* block = attempt(false, false)) return block;
  }
  const bool fresh = sources_.pageTooLarge() && !without(Mechanism::kFreshWindow);
  return fresh ? attempt(true, false) : nullptr;
}

std::optional<Window> Mover::findWindow(bool fresh_only) {
  const FreePageScan scan(heap_, ground_.scans, Whither::kWithinPool);
  return bestWindow(heap_, request_, scan, ground_.windows, fresh_only);
}

Block* Mover::attempt(bool fresh_only, bool waits) {
  bool late = false;
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
    late = heap_.pool().isDefault() && heap_.lowWater().wasReached();
    reserved_.take(*window);
  }
  try {
    if (sources_.fillGaps(waits, late) && mapAll(ground_, reserved_)) {
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

void Mover::undo() noexcept {
  unmapAll(ground_, reserved_, heap_, request_.kind);
  reserved_.putBack();
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

// A heap takes what it never had by growing, in whatever way it gets it.
void Mover::noteCost() {
  std::uint64_t more = 0;
  for (const Step& step : reserved_.steps) {
    if (step.source && !step.revived && request_.recording)
      request_.recording->moved += step.page->bytes();
    if (step.source != &heap_ && !step.revived) more += step.page->bytes();
  }
  if (request_.recording) return;
  const std::uint64_t backed = reserved_.backed_before;
  const std::uint64_t now = ground_.core.device.hostNanoseconds();
  const std::uint64_t most = std::max(reserved_.window.range->most_backed, backed);
  const double grown = double(std::max(backed + more, most) - most);
  const double plain = grown / kPlainBytes * (ground_.create_cost.mean() + ground_.map_cost.mean());
  ground_.cost.note(double(now - began_ns_), without(Mechanism::kPlainCredit) ? 0 : plain, now);
}

// The memory was the heap's, or another's, or new: `reserved` must not be seen in between.
Block* Mover::commit() {
  noteCost();
  std::vector<Heap*> heaps{&heap_};
  for (const Step& step : reserved_.steps) {
    if (Heap* const source = step.page->counted_by) heaps.push_back(source);
  }
  const MutexLock holding_several(ground_.core.heaps_mutex);
  const HeapLocks locks(ground_.core.heaps_mutex, heaps);
  heap_.mutex().assertHeld();
  Window& window = reserved_.window;
  Layout& layout = heap_.layout(request_.kind);
  layout.prepareHoles(2);  // the window, and the block: the last that may throw
  std::uint32_t epoch = 0;
  for (const Piece& piece : reserved_.pieces) {
    epoch = std::max(epoch, piece.epoch);
    layout.endReserve();
  }
  for (Step& step : reserved_.steps) {
    epoch = std::max(epoch, step.epoch);
    commitStep(step);
    window.to = std::max(window.to, step.to->placeEnd());  // a page may reach further
  }
  Block& hole = holeAt(heap_, *window.range, window.from);
  Block* free = heap_.fill(request_.kind, hole, window.from, window.to,
                           std::min(epoch, heap_.completion().now().epoch));
  std::uint64_t& most = window.range->most_backed;
  most = std::max(most, layout.totals().segment_bytes);
  if (!reserved_.steps.empty()) heap_.lowWater().notePagesMoved();
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
