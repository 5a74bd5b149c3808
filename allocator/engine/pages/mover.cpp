#include "allocator/engine/pages/mover.hpp"

#include <algorithm>

#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

/// Plain growth, which costs nobody too much: half of what PyTorch's expandable segments grow by.
static constexpr double kPlainBytes = 10 * double(kMiB);

Mover::Mover(State& state, Heap& heap, const Request& request, PagesFrom from)
    : state_(state),
      heap_(heap),
      request_(request),
      from_(from),
      number_(++state.number),
      began_ns_(state.core.device.hostNanoseconds()),
      reserved_(state, heap, request.kind) {}

// A window between blocks may be too narrow for the pages there are. At the end of the range there
// is room for all. If this stream could not be made to wait for another, the heap grows.
Block* Mover::place() {
  const bool waits = state_.core.options.cross_stream_reuse == CrossStreamReuse::kWait &&
                     state_.core.progress.ordersSoon() && from_ != PagesFrom::kLenders &&
                     request_.capture == nullptr && !captured();
  if (Block* block = attempt(false, waits)) return block;
  if (waits && unordered_) {
    if (Block* block = attempt(false, false)) return block;
  }
  const bool fresh = page_too_large_ && !without(Mechanism::kFreshWindow);
  return fresh ? attempt(true, false) : nullptr;
}

std::optional<Window> Mover::findWindow(bool fresh_only, Heap* beside) {
  const FreePageScan scan(heap_, state_.number);
  const PageRange* const only =
      fresh_only ? state_.notes.of(heap_).newestRange(request_.kind) : nullptr;
  if (beside == nullptr) return bestWindow(heap_, request_, {scan}, state_.number, only);
  beside->mutex().assertHeld();
  const FreePageScan there(*beside, state_.number);
  return bestWindow(heap_, request_, {scan, &there}, state_.number, only);
}

// Parked pages, and then those of the heap beside, come before anything that takes a device call.
Block* Mover::takeWindow(bool fresh_only, bool& found, Heap* beside) {
  if (Block* block = heap_.allocate(request_)) return block;  // another thread has made room
  auto window = findWindow(fresh_only, nullptr);
  const auto lacks = [&] { return !window || window->units_to_map > 0; };
  if (lacks() && heap_.parked_bytes != 0) {
    unpark(state_, heap_, number_);
    unparked_ = true;
    heap_.lowWater().notePagesMoved();  // there is something to do at the next low water
    if (Block* block = heap_.allocate(request_)) return block;
    window = findWindow(fresh_only, nullptr);
  }
  if (lacks() && beside != nullptr) window = findWindow(fresh_only, beside);
  late_ = heap_.pool().isDefault() && heap_.lowWater().wasReached();
  found = window.has_value();
  if (found) reserved_.take(*window);
  return nullptr;
}

Block* Mover::takeWindow(bool fresh_only, bool& found) {
  if (Heap* const beside = besideInReach()) {
    std::vector<Heap*> both{&heap_, beside};
    const MutexLock holding_several(state_.core.heaps_mutex);
    const HeapLocks locks(state_.core.heaps_mutex, both);
    heap_.mutex().assertHeld();
    const bool recorded = heap_.completion().recorded() != 0;  // a capture has begun since
    return takeWindow(fresh_only, found, recorded ? nullptr : beside);
  }
  const MutexLock lock(heap_.mutex());
  return takeWindow(fresh_only, found, nullptr);
}

Block* Mover::attempt(bool fresh_only, bool waits) {
  bool found = false;
  if (Block* block = takeWindow(fresh_only, found)) return block;
  if (!found) return nullptr;
  try {
    if (fillGaps(waits, late_) && reserved_.map()) {
      noteCost();
      Block* const block = reserved_.commit(request_);
      if (unparked_ && !without(Mechanism::kParkingAgain)) {
        const MutexLock lock(heap_.mutex());
        park(state_, heap_, number_);  // what it had no use for
      }
      return block;
    }
  } catch (...) {
    reserved_.undo();
    throw;
  }
  reserved_.undo();
  return nullptr;
}

// Memory that a heap never had counts as growth, in whatever way the heap gets it. Calls for host
// pages take far longer, and must not make the device's pages larger.
void Mover::noteCost() {
  std::uint64_t more = 0;
  for (const Step& step : reserved_.steps) {
    if (step.from && request_.capture) request_.capture->moved += step.page->bytes();
    if (step.source() != &heap_) more += step.page->bytes();
  }
  if (request_.capture || pagesOf(heap_) != PageKind::kDevice) return;
  const std::uint64_t backed = reserved_.backed_before;
  const std::uint64_t now = state_.core.device.hostNanoseconds();
  const std::uint64_t most = std::max(state_.notes.of(heap_).mostBacked(request_.kind), backed);
  const double grown = double(std::max(backed + more, most) - most);
  const double plain = grown / kPlainBytes * (state_.create_cost.mean() + state_.map_cost.mean());
  state_.cost.note(double(now - began_ns_ - asked_ns_),
                   without(Mechanism::kPlainCredit) ? 0 : plain, now);
}

}  // namespace cistern::pages
