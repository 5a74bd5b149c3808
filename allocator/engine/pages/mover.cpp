#include "allocator/engine/pages/mover.hpp"

#include <algorithm>

#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

/// Plain growth, which costs nobody too much: half of what PyTorch's expandable segments grow by,
/// but at least a page.
static constexpr double kPlainBytes = 10 * double(kMiB);

Mover::Mover(State& state, Heap& heap, const Request& request, PagesFrom from, WantedPages* wanted)
    : state_(state),
      heap_(heap),
      request_(request),
      from_(from),
      began_ns_(state.core.device.hostNanoseconds()),
      reserved_(state, heap, request.kind),
      wanted_(wanted) {}

// A window between blocks may be too narrow for the pages there are. At the end of the range there
// is room for all. If this stream could not be made to wait for another, the heap grows.
Block* Mover::place() {
  const bool waits = state_.core.options.cross_stream_reuse == CrossStreamReuse::kWait &&
                     state_.core.progress.ordersSoon() && from_ != PagesFrom::kLenders &&
                     request_.capture == nullptr && !captured();
  if (Block* block = attempt(false, waits)) return block;
  if (wanted_ != nullptr && wanted_->units > 0) return nullptr;
  if (waits && unordered_) {
    if (Block* block = attempt(false, false)) return block;
  }
  if (page_too_large_ && !without(Mechanism::kFreshWindow)) {
    if (Block* block = attempt(true, false)) return block;
  }
  return from_ == PagesFrom::kQueued && thaw() ? attempt(false, false) : nullptr;
}

// A heap whose round does not come to rest begins anew, as a program begins: it grows where memory
// is missing, at addresses that it has not used. The pages of what is free come there, as they are
// wanted. So it needs as much as if it had never moved a page. When half of its addresses are used
// up, it grows between them.
//
// What is in use all the time pins its pages, and best fit has no use for the gaps in them. Where
// that is much, the heap is given more time. False: it does not freeze now.
bool Mover::freeze() {
  Rounds& rounds = heap_.rounds();
  HeapNotes& notes = state_.notes.of(heap_);
  if (rounds.keepsMuch() && !notes.late) {
    notes.countAnew(state_.core.options.recycle_budget, true);
    rounds.dropPlan();
    return false;
  }
  const PageRange& range = *notes.newestRange(SizeKind::kLarge);
  const bool room = range.touched <= range.reserved_bytes / kUnit / 2;
  rounds.freeze(range.placeOfUnit(room ? range.touched : 0));
  ++state_.counters.freezes;
  state_.cost.forget();
  return true;
}

// A frozen heap uses nothing at its former places, where less may be missing. False: it was not
// frozen.
bool Mover::thaw() {
  const MutexLock lock(heap_.mutex());
  const bool was_frozen = heap_.rounds().frozen();
  heap_.rounds().thaw();
  return was_frozen;
}

Block* Mover::placeAsBefore() {
  {
    const MutexLock lock(heap_.mutex());
    if (heap_.isFreezeDue() && freeze()) [[unlikely]]
      return heap_.allocate(request_);
    Address at = heap_.rounds().placeOf(request_.granules);
    if ((at & (request_.alignment() - 1)) != 0) at = 0;  // a plain request's of that size
    std::optional<Window> window;
    if (at != 0) {
      const FreePageScan scan(heap_, state_.number);
      window = windowAt(heap_, request_, {&scan}, state_.number, at);
    }
    if (!window) return heap_.allocate(request_);
    reserved_.take(*window);
  }
  try {
    return reserved_.commit(request_);
  } catch (...) {
    reserved_.undo();
    throw;
  }
}

std::optional<Window> Mover::findWindow(bool fresh_only, Heap* beside) {
  const FreePageScan scan(heap_, state_.number);
  const PageRange* const only =
      fresh_only ? state_.notes.of(heap_).newestRange(request_.kind) : nullptr;
  if (beside == nullptr) return bestWindow(heap_, request_, {&scan}, state_.number, only);
  beside->mutex().assertHeld();
  const FreePageScan there(*beside, state_.number);
  return bestWindow(heap_, request_, {&scan, &there}, state_.number, only);
}

// Pages of the heap beside come before anything that takes a device call.
Block* Mover::takeWindow(bool fresh_only, bool& found, Heap* beside) {
  if (Block* block = heap_.allocate(request_)) return block;  // another has made room
  frozen_ = heap_.rounds().frozen();
  auto window = findWindow(fresh_only, nullptr);
  const bool lacks = !window || window->units_to_map > 0;
  if (lacks && beside != nullptr) window = findWindow(fresh_only, beside);
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
    const bool captured = heap_.completion().captured() != 0;  // a capture has begun since
    return takeWindow(fresh_only, found, captured ? nullptr : beside);
  }
  const MutexLock lock(heap_.mutex());
  return takeWindow(fresh_only, found, nullptr);
}

Block* Mover::attempt(bool fresh_only, bool waits) {
  bool found = false;
  if (Block* block = takeWindow(fresh_only, found)) return block;
  if (!found) return nullptr;
  try {
    if (fillGaps(waits) && reserved_.map()) {
      noteCost();
      return reserved_.commit(request_);
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
  if (request_.capture || heap_.memory() != MemoryKind::kPages) return;
  const std::uint64_t backed = reserved_.backed_before;
  const std::uint64_t now = state_.core.device.hostNanoseconds();
  const std::uint64_t most =
      std::max(state_.notes.of(heap_).mostBacked(request_.kind) * kUnit, backed);
  const double grown = double(std::max(backed + more, most) - most);
  const double pages = grown > 0 ? std::max(grown / kPlainBytes, 1.0) : 0;
  const double plain = pages * (state_.create_cost.mean() + state_.map_cost.mean());
  const double took = double(now - began_ns_ - asked_ns_);
  const double credit = without(Mechanism::kPlainCredit) ? 0 : plain;
  state_.cost.note(took, credit, now);
  state_.notes.of(heap_).restless.note(took, credit, now);
}

}  // namespace cistern::pages
