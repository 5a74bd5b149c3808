#include "allocator/engine/heap/heap.hpp"
#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

// ---- Take ---------------------------------------------------------------------------------------

void Reservation::take(const Window& found) {
  heap_.mutex().assertHeld();
  window = found;
  backed_before = heap_.layout(kind_).totals().segment_bytes;
  last_use_ = 0;
  pieces_.clear();
  gaps.clear();
  steps.clear();
  reservePieces(reviveStale());
  noteRoomBeyond();
}

// The first of the window's blocks, as they are then.
Block* Reservation::reviveStale() {
  std::vector<Mapping*> stale;
  forEachMapping(*window.range, window.from, window.to, [&](Mapping& mapping) {
    if (!mapping.isCurrent()) stale.push_back(&mapping);
  });
  if (stale.empty()) return window.first;
  Block* first = revive(state_, heap_, stale);
  while (first->address() > window.from) first = first->prev;
  heap_.lowWater().notePagesMoved();
  return first;
}

// The free blocks of the window become holes, and units without a mapping are gaps. All that may
// fail comes first. A block that is taken out of the heap now may come back to it if the miss
// fails. So each block is a hole to make, and one to fill.
void Reservation::reservePieces(Block* first) {
  std::size_t blocks = 0;
  for (const Block* b = first; b && b->address() < window.to; b = b->next)
    blocks += b->isFree() ? 1 : 0;
  heap_.layout(kind_).prepareHoles(unsigned(2 * (blocks + 2)));
  pieces_.reserve(blocks);
  steps.reserve(window.units_to_map);
  noteGaps();
  for (Block* block = first; block && block->address() < window.to; block = block->next) {
    if (!block->isFree()) continue;
    const Address begin = std::max(block->address(), window.from),
                  end = std::min(block->end(), window.to);
    pieces_.push_back({begin, end, heap_.completion().epochOf(block->epoch)});
    noteUse(pieces_.back().epoch);
    block = heap_.punch(kind_, *block, begin, end);
    heap_.layout(kind_).reserveFill();
  }
}

void Reservation::noteGaps() {
  const PageRange& range = *window.range;
  const std::uint32_t end = range.unitAt(window.to + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(window.from); unit < end; ++unit) {
    if (range.slots[unit] != nullptr) continue;
    if (gaps.empty() || gaps.back().end != unit) gaps.push_back({unit, unit, unit});
    gaps.back().end = gaps.back().room_end = unit + 1;
  }
}

// The hole may go on behind the window's end.
void Reservation::noteRoomBeyond() {
  const PageRange& range = *window.range;
  if (gaps.empty() || range.placeOfUnit(gaps.back().end) != window.to) return;
  std::uint32_t& end = gaps.back().room_end;
  const std::uint32_t most = range.unitAt(holeAt(heap_, range, window.to - kUnit).end());
  while (end < most && range.slots[end] == nullptr) ++end;
}

// Memory that is complete elsewhere is complete for this heap's stream.
void Reservation::detach(Heap& source, const std::vector<Step>& taken) {
  source.mutex().assertHeld();
  std::vector<Mapping*> from;
  for (const Step& step : taken) from.push_back(step.from);
  reserve(source, from);
  for (const Step& step : taken) {
    if (&source == &heap_) noteUse(step.from->last_use);
    steps.push_back(step);
  }
}

// ---- Map ----------------------------------------------------------------------------------------

// One call gives access to a run of pages that follow each other.
bool Reservation::map() {
  std::ranges::sort(steps, {}, &Step::unit);
  const std::uint64_t since = state_.core.device.hostNanoseconds();
  for (std::size_t i = 0, first = 0; i < steps.size(); ++i) {
    if (!mapOne(steps[i])) return false;
    if (i + 1 < steps.size() && steps[i + 1].unit == steps[i].to->end_unit) continue;
    if (!allowAccess(first, i)) return false;
    first = i + 1;
  }
  const double took = double(state_.core.device.hostNanoseconds() - since);
  const bool device = heap_.memory() == MemoryKind::kPages;
  if (!steps.empty() && device) state_.map_cost.note(took / double(steps.size()));
  return true;
}

// All that may fail on the host comes before the call.
bool Reservation::mapOne(Step& step) {
  Mapping& mapping = state_.table.addMapping(*step.page, *window.range, step.unit);
  const Status mapped =
      state_.core.device.map(mapping.deviceAddress(), mapping.bytes(), step.page->handle);
  state_.core.answers.note(mapped);
  mapped ? void(step.to = &mapping) : state_.table.removeMapping(mapping);
  return mapped.ok();
}

bool Reservation::allowAccess(std::size_t first, std::size_t last) {
  const Address begin = steps[first].to->deviceAddress();
  const Address end = steps[last].to->deviceAddress() + steps[last].to->bytes();
  const Status allowed = state_.core.device.setAccess(begin, end - begin);
  state_.core.answers.note(allowed);
  for (std::size_t i = first; allowed && i <= last; ++i) {
    steps[i].to->accessible = true;
    state_.worked |= steps[i].page->kind == MemoryKind::kPages;
  }
  return allowed.ok();
}

// ---- Commit -------------------------------------------------------------------------------------

// The memory was the heap's, or another's, or new: `reserved` must not be seen in between.
Block* Reservation::commit(const Request& request) {
  std::vector<Heap*> heaps{&heap_};
  for (const Step& step : steps) {
    if (Heap* const source = step.page->counted_by) heaps.push_back(source);
  }
  const MutexLock holding_several(state_.core.heaps_mutex);
  const HeapLocks locks(state_.core.heaps_mutex, heaps);
  heap_.mutex().assertHeld();
  Layout& layout = heap_.layout(kind_);
  if (state_.core.log.on()) [[unlikely]]
    expectHooks();
  layout.prepareHoles(2);  // the window, and the block: the last that may throw
  for (std::size_t i = 0; i < pieces_.size(); ++i) layout.endReserve();
  for (const Step& step : steps) {
    commitStep(step);
    window.to = std::max(window.to, step.to->placeEnd());  // a page may reach further
  }
  Block* free = heap_.fill(kind_, holeAt(heap_, *window.range, window.from), window.from, window.to,
                           last_use_);
  std::uint32_t& most = state_.notes.of(heap_).mostBacked(kind_);
  most = std::max(most, std::uint32_t(layout.totals().segment_bytes / kUnit));
  if (!steps.empty()) heap_.lowWater().notePagesMoved();
  heap_.lowWater().rise(heap_.busyBytes());
  return heap_.allocateFrom(*free, request, window.at.value_or(0));
}

void Reservation::commitStep(const Step& step) noexcept {
  if (Heap* const source = step.source()) {
    source->mutex().assertHeld();
    source->layout(step.from->range->kind).endReserve();
    source->completion().noteLeft(step.from->last_use);
    state_.table.makeStale(*step.from);
    ++state_.counters.recycled;
  }
  state_.table.makeCurrent(*step.to);
  state_.count(*step.page, &heap_, kind_);
}

void Reservation::expectHooks() {
  for (const Step& step : steps)
    state_.core.memory_hooks.expect(State::noticeOf(*step.page, *window.range, step.unit));
}

// ---- Undo ---------------------------------------------------------------------------------------

// The device may be called at once, as hooks have not heard of the mappings. One that will not go
// stays as a stale one, which harms nobody; with hooks it is not taken back into use either.
void Reservation::undo() noexcept {
  for (const Step& step : steps) {
    if (step.to && !state_.remove(*step.to) && state_.core.memory_hooks.on())
      step.to->accessible = false;
    if (step.from == nullptr) abandon(*step.page);
  }
  for (const Step& step : steps) {
    Heap* const source = step.source();
    if (source == nullptr) continue;
    const MutexLock lock(source->mutex());
    source->layout(step.from->range->kind).endReserve();
    putIn(*source, *step.from, step.from->last_use);
  }
  const MutexLock lock(heap_.mutex());
  for (const Piece& piece : pieces_) {
    heap_.layout(kind_).endReserve();
    heap_.fill(kind_, holeAt(heap_, *window.range, piece.from), piece.from, piece.to, piece.epoch);
  }
}

void Reservation::abandon(PhysicalPage& page) noexcept {
  if (page.mappings.empty() && state_.release(page)) return;
  if (page.counted_by != nullptr) return;
  const MutexLock lock(heap_.mutex());
  state_.count(page, &heap_, kind_);
}

}  // namespace cistern::pages
