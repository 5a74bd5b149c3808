// Claiming a window and the pages that will come into it, and giving both back. See mover.hpp.
#include <algorithm>

#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/parking.hpp"

namespace cistern::pages {

std::optional<Window> Mover::findWindow(bool fresh_only) {
  const FreePageScan scan(heap_, ground_.scans, Whither::kWithinPool);
  return bestWindow(heap_, request_, scan, ground_.windows, fresh_only);
}

// All that may fail comes first. Pre: the window is of now: findWindow, under the same lock.
void Mover::reserve(const Window& window) {
  window_ = window;
  pieces_.clear();
  gaps_.clear();
  steps_.clear();
  revived_.clear();
  prepare();
  reservePieces();
  reserveHoles();
}

// What is taken out of the heap now may come back to it if the miss fails: each is a hole to make,
// and one to fill.
void Mover::prepare() {
  std::size_t pieces = 0;
  for (const Block* b = window_.first; b && b->address() < window_.to; b = b->next)
    pieces += b->isFree() ? 1 : 0;
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge})
    prepareMoves(heap_, kind, window_.revivals + (kind == request_.kind ? pieces + 2 : 0));
  const std::uint32_t units = window_.units_to_map + window_.revivals;
  steps_.reserve(units);
  revived_.reserve(window_.revivals);
  pieces_.reserve(pieces);
  gaps_.reserve(units);
}

// The free blocks of the window become holes.
void Mover::reservePieces() {
  Block* block = window_.first;
  while (block && block->address() < window_.to) {
    if (!block->isFree()) {
      block = block->next;
      continue;
    }
    const Address end = std::min(block->end(), window_.to);
    pieces_.push_back({block->address(), end, block->epoch});
    block = heap_.punch(request_.kind, *block, block->address(), end)->next;
    heap_.layout(request_.kind).reserveFill();
  }
}

// Units without a mapping are gaps; stale mappings are taken back into use.
void Mover::reserveHoles() {
  const PageRange& range = *window_.range;
  const std::uint32_t end = range.unitAt(window_.to + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(window_.from); unit < end;) {
    Mapping* mapping = range.slots[unit];
    if (mapping == nullptr) {
      noteGap(unit, unit + 1);
      ++unit;
      continue;
    }
    if (mapping->page->parked) {
      steps_.push_back({mapping->page, unit, nullptr, mapping, nullptr,
                        unpark(ground_, *mapping->page, heap_), true});
    } else if (!mapping->isCurrent()) {
      revived_.push_back({mapping->page, unit, mapping->page->current, mapping, &heap_, 0, true});
    }
    unit = mapping->endUnit();
  }
  detach(heap_, revived_);
  if (gaps_.empty()) return;
  // Behind the window's end the hole may go on.
  Gap& last = gaps_.back();
  if (range.placeOfUnit(last.end) != window_.to) return;
  const std::uint32_t most = range.unitAt(holeAt(heap_, range, window_.to - kUnit).end());
  while (last.room_end < most && range.slots[last.room_end] == nullptr) ++last.room_end;
}

void Mover::noteGap(std::uint32_t from, std::uint32_t to) {
  if (!gaps_.empty() && gaps_.back().end == from) {
    gaps_.back().end = gaps_.back().room_end = to;
  } else {
    gaps_.push_back({from, to, to});
  }
}

// Takes the pages of the steps out of the source's free memory. Pre: a scan of now has found
// their mappings.
void Mover::detach(Heap& source, std::vector<Step>& steps) {
  std::ranges::sort(steps, HighestFirst{}, &Step::from);
  for (Step& step : steps) {
    Mapping& mapping = *step.from;
    Block& free = *mapping.found.in;
    step.source = &source;
    step.epoch = &source == &heap_ ? mapping.last_use.epoch : 0;
    source.punch(mapping.range->kind, free, mapping.place(), mapping.placeEnd());
    source.layout(mapping.range->kind).reserveFill();
  }
  for (Step& step : steps) steps_.push_back(step);
}

void Mover::undo() noexcept {
  unmapAll();
  for (const Step& step : steps_) {
    if (step.source == nullptr) continue;
    const MutexLock lock(step.source->mutex());
    const Mapping& mapping = *step.from;
    step.source->layout(mapping.range->kind).endReserve();
    putIn(*step.source, mapping, mapping.last_use);
  }
  const MutexLock lock(heap_.mutex());
  for (const Step& step : steps_) {
    if (step.source == nullptr && step.revived) parkAgain(ground_, *step.page);
  }
  for (const Piece& piece : pieces_) {
    heap_.layout(request_.kind).endReserve();
    // Epochs may have been renumbered meanwhile: then the present one is right for all.
    heap_.fill(request_.kind, holeAt(heap_, *window_.range, piece.from), piece.from, piece.to,
               std::min(piece.epoch, heap_.completion().now().epoch));
  }
}

}  // namespace cistern::pages
