#include "allocator/engine/pages/view_table.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"

namespace cistern::pages {

ViewTable::~ViewTable() {
  for (PhysicalPage* page : pages_) {
    for (const View* view : page->views) delete view;
    delete page;
  }
}

PhysicalPage& ViewTable::addPage(Page handle, std::uint32_t units) {
  if (pages_.size() == pages_.capacity()) pages_.reserve(2 * pages_.size() + 16);
  PhysicalPage& page = *new PhysicalPage;
  page.handle = handle;
  page.units = units;
  page.index = pages_.size();
  pages_.push_back(&page);
  bytes_ += page.bytes();
  return page;
}

void ViewTable::removePage(PhysicalPage& page) noexcept {
  CISTERN_CHECK(page.views.empty() && page.current == nullptr);
  takeSpare(page);
  bytes_ -= page.bytes();
  pages_.back()->index = page.index;
  pages_[page.index] = pages_.back();
  pages_.pop_back();
  delete &page;
}

View& ViewTable::addView(PhysicalPage& page, PageRange& range, std::uint32_t unit) {
  if (page.views.size() == page.views.capacity()) page.views.reserve(2 * page.views.size() + 1);
  View& view = *new View;
  page.views.push_back(&view);
  view.page = &page;
  view.range = &range;
  view.unit = unit;
  view.end_unit = (unit + page.units) & 0x3fffffffu;
  view.is_home = page.views.size() == 1;
  for (std::uint32_t u = unit; u < view.endUnit(); ++u) {
    CISTERN_ASSERT(range.slots[u] == nullptr);
    range.slots[u] = &view;
  }
  range.touched = std::max(range.touched, view.endUnit());
  link(view);
  ++views_;
  return view;
}

void ViewTable::removeView(View& view) noexcept {
  CISTERN_CHECK(view.removable());
  unlink(view);
  for (std::uint32_t u = view.unit; u < view.endUnit(); ++u) view.range->slots[u] = nullptr;
  PhysicalPage& page = *view.page;
  std::erase(page.views, &view);
  page.views.empty() ? makeSpare(page) : void(page.views.front()->is_home = 1);
  --views_;
  delete &view;
}

void ViewTable::makeCurrent(View& view) noexcept {
  CISTERN_CHECK(view.page->current == nullptr);
  if (view.removable()) unlink(view);
  view.page->current = &view;
  view.found = {0, nullptr};
}

void ViewTable::makeStale(View& view) noexcept {
  CISTERN_CHECK(view.isCurrent());
  view.page->current = nullptr;
  if (view.removable()) link(view);
}

void ViewTable::pin(View& view) noexcept {
  CISTERN_CHECK(view.isCurrent());
  ++view.pins;
  ++view.page->pins;
}

void ViewTable::unpin(View& view) noexcept {
  CISTERN_CHECK(view.pins > 0);
  --view.page->pins;
  --view.pins;
  if (view.removable()) link(view);
}

void ViewTable::makeSpare(PhysicalPage& page) noexcept {
  if (page.spare) return;
  page.spare = true;
  page.previous_spare = nullptr;
  page.next_spare = spares_;
  if (spares_) spares_->previous_spare = &page;
  spares_ = &page;
}

void ViewTable::takeSpare(PhysicalPage& page) noexcept {
  if (!page.spare) return;
  page.spare = false;
  (page.previous_spare ? page.previous_spare->next_spare : spares_) = page.next_spare;
  if (page.next_spare) page.next_spare->previous_spare = page.previous_spare;
}

PageRange& ViewTable::addRange() {
  ranges_.push_back(std::make_unique<PageRange>());
  return *ranges_.back();
}

void ViewTable::link(View& view) noexcept {
  view.beside.older = youngest_;
  view.beside.younger = nullptr;
  (youngest_ ? youngest_->beside.younger : oldest_) = &view;
  youngest_ = &view;
  ++stale_;
}

void ViewTable::unlink(View& view) noexcept {
  (view.beside.older ? view.beside.older->beside.younger : oldest_) = view.beside.younger;
  (view.beside.younger ? view.beside.younger->beside.older : youngest_) = view.beside.older;
  view.beside.older = view.beside.younger = nullptr;
  --stale_;
}

std::size_t ViewTable::hostBytes() const {
  std::size_t slots = 0;
  for (const auto& range : ranges_) slots += sizeof(PageRange) + range->slots.size() * 8;
  return slots + pages_.size() * sizeof(PhysicalPage) + pages_.capacity() * sizeof(void*) +
         views_ * (sizeof(View) + sizeof(void*));
}

// A graph reaches the page here: it is mapped, and in use in this pool or nowhere.
void ViewTable::auditPinned(const View& view) {
  const View* current = view.page->current;
  CISTERN_CHECK(view.accessible && current != nullptr);
  CISTERN_CHECK(&current->range->home->pool() == &view.range->home->pool());
}

void ViewTable::audit() const {
  std::size_t views = 0, stale = 0, removable = 0, without_view = 0;
  std::uint64_t bytes = 0, covered = 0, slots = 0;
  for (const PhysicalPage* page : pages_) {
    CISTERN_CHECK(pages_[page->index] == page);
    bytes += page->bytes();
    without_view += page->views.empty() ? 1 : 0;
    bool current_found = page->current == nullptr;
    std::uint32_t pins = 0;
    for (const View* view : page->views) {
      CISTERN_CHECK(view->page == page && view->units() == page->units);
      CISTERN_CHECK(view->endUnit() <= view->range->units());
      for (std::uint32_t u = view->unit; u < view->endUnit(); ++u)
        CISTERN_CHECK(view->range->slots[u] == view);
      CISTERN_CHECK(view->is_home == (view == page->views.front()));
      current_found |= view->isCurrent();
      covered += view->units();
      ++views;
      removable += view->removable() ? 1 : 0;
      pins += view->pins;
      if (view->pins > 0) auditPinned(*view);
    }
    CISTERN_CHECK(current_found && pins == page->pins);
  }
  for (const View* view = oldest_; view; view = view->beside.younger, ++stale) {
    CISTERN_CHECK(view->removable() &&
                  (view->beside.younger ? view->beside.younger->beside.older : youngest_));
  }
  for (const auto& range : ranges_) {
    CISTERN_CHECK(range->bytes == range->units() * kUnit && range->bytes <= range->reserved_bytes);
    for (const View* view : range->slots) slots += view ? 1 : 0;
  }
  std::size_t spares = 0;
  for (const PhysicalPage* page = spares_; page; page = page->next_spare, ++spares) {
    CISTERN_CHECK(page->spare && page->views.empty());
  }
  CISTERN_CHECK(spares == without_view);
  CISTERN_CHECK(slots == covered && views == views_ && bytes == bytes_);
  CISTERN_CHECK(stale == stale_ && stale == removable);
}

}  // namespace cistern::pages
