// Claiming a window and the pages that will come into it, and giving both back. See mover.hpp.
#include <algorithm>

#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/parking.hpp"

namespace cistern::pages {

std::optional<Window> Mover::findWindow(bool fresh_only) {
  const Survey survey(heap_, ground_.surveys, Whither::kWithinPool);
  return bestWindow(heap_, request_, survey, ground_.windows, fresh_only);
}

// All that may fail comes first. Pre: a survey of now has found the window.
void Mover::claim(const Window& window) {
  window_ = window;
  pieces_.clear();
  gaps_.clear();
  steps_.clear();
  coming_ = {};
  prepare(heap_);
  claimPieces();
  claimHoles();
}

// Each unit of the window may take a page from the heap, and later a page back to it; the window's
// own pieces are fewer than its units and one.
void Mover::prepare(Heap& heap) {
  const std::uint32_t units = window_.units_to_map + window_.revivals;
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    heap.layout(kind).prepareHoles(2 * units + 8);
  }
  steps_.reserve(units);
  revived_.clear();
  revived_.reserve(window_.revivals);
  pieces_.reserve(units + 2);
  gaps_.reserve(units + 2);
}

// The free blocks of the window become holes.
void Mover::claimPieces() {
  Block* block = window_.first;
  while (block && block->address() < window_.to) {
    if (!block->isFree()) {
      block = block->next;
      continue;
    }
    const Address end = std::min(block->end(), window_.to);
    pieces_.push_back({block->address(), end, block->epoch});
    block = heap_.punch(request_.kind, *block, block->address(), end)->next;
  }
}

// Units without a view are gaps; stale views are taken back into use.
void Mover::claimHoles() {
  const PageRange& range = *window_.range;
  std::vector<Step>& revived = revived_;
  const std::uint32_t end = range.unitAt(window_.to + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(window_.from); unit < end;) {
    View* view = range.slots[unit];
    if (view == nullptr) {
      noteGap(unit, unit + 1);
      ++unit;
      continue;
    }
    if (view->page->parked) {
      steps_.push_back({view->page, unit, nullptr, view, nullptr, view->page->last_use,
                        unpark(ground_, *view->page, heap_), true});
    } else if (!view->isCurrent()) {
      revived.push_back({view->page, unit, view->page->current, view, &heap_, {}, 0, true});
    }
    unit = view->endUnit();
  }
  detach(heap_, revived);
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

// Takes the pages of the steps out of the source's free memory, the highest of a block first: what
// is below stays the same block. Pre: a survey of now has found their views.
void Mover::detach(Heap& source, std::vector<Step>& steps) {
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.from->range != b.from->range ? a.from->range < b.from->range
                                          : a.from->unit > b.from->unit;
  });
  for (Step& step : steps) {
    View& view = *step.from;
    Block& free = *view.found.in;
    step.last_use = {free.epoch, source.generation};
    step.source = &source;
    step.epoch = &source == &heap_ ? free.epoch : 0;
    source.punch(view.range->kind, free, view.place(), view.placeEnd());
  }
  for (Step& step : steps) steps_.push_back(step);
}

void Mover::putBack(Heap& heap, const PageRange& range, Address from, Address to,
                    std::uint32_t epoch) noexcept {
  // Epochs may have been renumbered meanwhile: then the present one is right for all.
  heap.fill(range.kind, holeAt(heap, range, from), from, to, std::min(epoch, heap.epoch));
}

void Mover::undo() noexcept {
  unmapAll();
  for (const Step& step : steps_) {
    if (step.source == nullptr) continue;
    const MutexLock lock(step.source->mutex());
    const View& view = *step.from;
    putBack(*step.source, *view.range, view.place(), view.placeEnd(), step.last_use.epoch);
  }
  const MutexLock lock(heap_.mutex());
  for (const Step& step : steps_) {
    if (step.source == nullptr && step.revived) parkAgain(ground_, *step.page);
  }
  for (const Piece& piece : pieces_) {
    putBack(heap_, *window_.range, piece.from, piece.to, piece.epoch);
  }
}

}  // namespace cistern::pages
