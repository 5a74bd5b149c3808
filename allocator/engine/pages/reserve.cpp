#include "allocator/engine/pages/reserve.hpp"

#include <algorithm>

#include "allocator/engine/pages/parking.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

// All that may fail comes first.
void Reservation::take(const Window& found) {
  heap_.mutex().assertHeld();
  window = found;
  backed_before = heap_.layout(kind_).totals().segment_bytes;
  pieces.clear();
  gaps.clear();
  steps.clear();
  revived_.clear();
  prepare();
  reservePieces();
  reserveHoles();
}

// What is taken out of the heap now may come back to it if the miss fails: each is a hole to make,
// and one to fill.
void Reservation::prepare() {
  std::size_t blocks = 0;
  for (const Block* b = window.first; b && b->address() < window.to; b = b->next)
    blocks += b->isFree() ? 1 : 0;
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge})
    prepareMoves(heap_, kind, window.revivals + (kind == kind_ ? blocks + 2 : 0));
  const std::uint32_t units = window.units_to_map + window.revivals;
  steps.reserve(units);
  revived_.reserve(window.revivals);
  pieces.reserve(blocks);
  gaps.reserve(units);
}

// The free blocks of the window become holes.
void Reservation::reservePieces() {
  for (Block* block = window.first; block && block->address() < window.to; block = block->next) {
    if (!block->isFree()) continue;
    const Address end = std::min(block->end(), window.to);
    pieces.push_back({block->address(), end, block->epoch});
    block = heap_.punch(kind_, *block, block->address(), end);
    heap_.layout(kind_).reserveFill();
  }
}

// Units without a mapping are gaps; stale mappings are taken back into use.
void Reservation::reserveHoles() {
  const PageRange& range = *window.range;
  const std::uint32_t end = range.unitAt(window.to + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(window.from); unit < end;) {
    Mapping* const mapping = range.slots[unit];
    if (mapping == nullptr) {
      noteGap(unit++);
      continue;
    }
    PhysicalPage& page = *mapping->page;
    if (page.parked) {
      const std::uint32_t epoch = unpark(ground_, page, heap_);
      steps.push_back({&page, unit, nullptr, mapping, nullptr, epoch, true});
    } else if (!mapping->isCurrent()) {
      revived_.push_back({&page, unit, page.current, mapping, &heap_, 0, true});
    }
    unit = mapping->endUnit();
  }
  detach(heap_, revived_);
  noteRoomBeyond();
}

void Reservation::noteGap(std::uint32_t unit) {
  if (!gaps.empty() && gaps.back().end == unit) {
    gaps.back().end = gaps.back().room_end = unit + 1;
  } else {
    gaps.push_back({unit, unit + 1, unit + 1});
  }
}

// Behind the window's end the hole may go on.
void Reservation::noteRoomBeyond() {
  const PageRange& range = *window.range;
  if (gaps.empty() || range.placeOfUnit(gaps.back().end) != window.to) return;
  std::uint32_t& end = gaps.back().room_end;
  const std::uint32_t most = range.unitAt(holeAt(heap_, range, window.to - kUnit).end());
  while (end < most && range.slots[end] == nullptr) ++end;
}

void Reservation::detach(Heap& source, std::vector<Step>& taken) {
  source.mutex().assertHeld();
  std::ranges::sort(taken, HighestFirst{}, &Step::from);
  for (Step& step : taken) {
    Mapping& mapping = *step.from;
    const SizeKind kind = mapping.range->kind;
    step.source = &source;
    step.epoch = &source == &heap_ ? mapping.last_use.epoch : 0;
    source.punch(kind, *mapping.found.in, mapping.place(), mapping.placeEnd());
    source.layout(kind).reserveFill();
  }
  for (const Step& step : taken) steps.push_back(step);
}

void Reservation::putBack() noexcept {
  for (const Step& step : steps) {
    if (step.source == nullptr) continue;
    const MutexLock lock(step.source->mutex());
    step.source->layout(step.from->range->kind).endReserve();
    putIn(*step.source, *step.from, step.from->last_use);
  }
  const MutexLock lock(heap_.mutex());
  for (const Step& step : steps) {
    if (step.source == nullptr && step.revived) parkAgain(ground_, *step.page);
  }
  for (const Piece& piece : pieces) {
    heap_.layout(kind_).endReserve();
    // Epochs may have been renumbered meanwhile: then the present one is right for all.
    heap_.fill(kind_, holeAt(heap_, *window.range, piece.from), piece.from, piece.to,
               std::min(piece.epoch, heap_.completion().now().epoch));
  }
}

}  // namespace cistern::pages
