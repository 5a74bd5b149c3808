#include "allocator/engine/pages/mapping_table.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"

namespace cistern::pages {

MappingTable::~MappingTable() {
  for (PhysicalPage* page : pages_) {
    for (const Mapping* mapping : page->mappings) delete mapping;
    delete page;
  }
}

PhysicalPage& MappingTable::addPage(Page handle, std::uint32_t units) {
  if (pages_.size() == pages_.capacity()) pages_.reserve(2 * pages_.size() + 16);
  PhysicalPage& page = *new PhysicalPage;
  page.handle = handle;
  page.units = units;
  page.index = pages_.size();
  pages_.push_back(&page);
  bytes_ += page.bytes();
  return page;
}

void MappingTable::removePage(PhysicalPage& page) noexcept {
  CISTERN_CHECK(page.mappings.empty() && page.current == nullptr);
  takeSpare(page);
  bytes_ -= page.bytes();
  pages_.back()->index = page.index;
  pages_[page.index] = pages_.back();
  pages_.pop_back();
  delete &page;
}

Mapping& MappingTable::addMapping(PhysicalPage& page, PageRange& range, std::uint32_t unit) {
  if (page.mappings.size() == page.mappings.capacity())
    page.mappings.reserve(2 * page.mappings.size() + 1);
  Mapping& mapping = *new Mapping;
  page.mappings.push_back(&mapping);
  mapping.page = &page;
  mapping.range = &range;
  mapping.unit = unit;
  mapping.end_unit = (unit + page.units) & 0x3fffffffu;
  mapping.is_home = page.mappings.size() == 1;
  for (std::uint32_t u = unit; u < mapping.endUnit(); ++u) {
    CISTERN_ASSERT(range.slots[u] == nullptr);
    range.slots[u] = &mapping;
  }
  range.touched = std::max(range.touched, mapping.endUnit());
  link(mapping);
  ++mappings_;
  return mapping;
}

void MappingTable::removeMapping(Mapping& mapping) noexcept {
  CISTERN_CHECK(mapping.removable());
  unlink(mapping);
  for (std::uint32_t u = mapping.unit; u < mapping.endUnit(); ++u)
    mapping.range->slots[u] = nullptr;
  PhysicalPage& page = *mapping.page;
  std::erase(page.mappings, &mapping);
  page.mappings.empty() ? makeSpare(page) : void(page.mappings.front()->is_home = 1);
  --mappings_;
  delete &mapping;
}

void MappingTable::makeCurrent(Mapping& mapping) noexcept {
  CISTERN_CHECK(mapping.page->current == nullptr);
  if (mapping.removable()) unlink(mapping);
  mapping.page->current = &mapping;
  mapping.found = {0, nullptr};
  if (log_ && log_->on()) tell(MemoryAction::kPageMap, mapping);
}

void MappingTable::makeStale(Mapping& mapping) noexcept {
  CISTERN_CHECK(mapping.isCurrent());
  mapping.page->current = nullptr;
  if (mapping.removable()) link(mapping);
  if (log_ && log_->on()) tell(MemoryAction::kPageUnmap, mapping);
}

void MappingTable::tell(MemoryAction action, const Mapping& mapping) noexcept {
  const Heap& heap = *mapping.range->home;
  log_->note({action, mapping.deviceAddress(), mapping.bytes(), heap.stream(), heap.pool().id()});
}

void MappingTable::makeHome(Mapping& mapping) noexcept {
  std::vector<Mapping*>& all = mapping.page->mappings;
  all.front()->is_home = 0;
  std::iter_swap(all.begin(), std::ranges::find(all, &mapping));
  mapping.is_home = 1;
}

void MappingTable::pin(Mapping& mapping) noexcept {
  CISTERN_CHECK(mapping.isCurrent());
  ++mapping.pins;
  ++mapping.page->pins;
}

void MappingTable::unpin(Mapping& mapping) noexcept {
  CISTERN_CHECK(mapping.pins > 0);
  --mapping.page->pins;
  --mapping.pins;
  if (mapping.removable()) link(mapping);
}

void MappingTable::makeSpare(PhysicalPage& page) noexcept {
  if (page.spare) return;
  page.spare = true;
  page.previous_spare = nullptr;
  page.next_spare = spares_;
  if (spares_) spares_->previous_spare = &page;
  spares_ = &page;
}

void MappingTable::takeSpare(PhysicalPage& page) noexcept {
  if (!page.spare) return;
  page.spare = false;
  (page.previous_spare ? page.previous_spare->next_spare : spares_) = page.next_spare;
  if (page.next_spare) page.next_spare->previous_spare = page.previous_spare;
}

PageRange& MappingTable::addRange() {
  ranges_.push_back(std::make_unique<PageRange>());
  return *ranges_.back();
}

void MappingTable::link(Mapping& mapping) noexcept {
  mapping.beside.older = youngest_;
  mapping.beside.younger = nullptr;
  (youngest_ ? youngest_->beside.younger : oldest_) = &mapping;
  youngest_ = &mapping;
  ++stale_;
}

void MappingTable::unlink(Mapping& mapping) noexcept {
  (mapping.beside.older ? mapping.beside.older->beside.younger : oldest_) = mapping.beside.younger;
  (mapping.beside.younger ? mapping.beside.younger->beside.older : youngest_) =
      mapping.beside.older;
  mapping.beside.older = mapping.beside.younger = nullptr;
  --stale_;
}

std::size_t MappingTable::hostBytes() const {
  std::size_t slots = 0;
  for (const auto& range : ranges_) slots += sizeof(PageRange) + range->slots.size() * 8;
  return slots + pages_.size() * sizeof(PhysicalPage) + pages_.capacity() * sizeof(void*) +
         mappings_ * (sizeof(Mapping) + sizeof(void*));
}

// A graph reaches the page here: it is mapped, and in use in this pool or nowhere.
void MappingTable::auditPinned(const Mapping& mapping) {
  const Mapping* current = mapping.page->current;
  CISTERN_CHECK(mapping.accessible && current != nullptr);
  CISTERN_CHECK(&current->range->home->pool() == &mapping.range->home->pool());
}

void MappingTable::audit() const {
  std::size_t mappings = 0, stale = 0, removable = 0, without_mapping = 0;
  std::uint64_t bytes = 0, covered = 0, slots = 0;
  for (const PhysicalPage* page : pages_) {
    CISTERN_CHECK(pages_[page->index] == page);
    bytes += page->bytes();
    without_mapping += page->mappings.empty() ? 1 : 0;
    bool current_found = page->current == nullptr;
    std::uint32_t pins = 0;
    for (const Mapping* mapping : page->mappings) {
      CISTERN_CHECK(mapping->page == page && mapping->units() == page->units);
      CISTERN_CHECK(mapping->endUnit() <= mapping->range->units());
      for (std::uint32_t u = mapping->unit; u < mapping->endUnit(); ++u)
        CISTERN_CHECK(mapping->range->slots[u] == mapping);
      CISTERN_CHECK(mapping->is_home == (mapping == page->mappings.front()));
      current_found |= mapping->isCurrent();
      covered += mapping->units();
      ++mappings;
      removable += mapping->removable() ? 1 : 0;
      pins += mapping->pins;
      if (mapping->pins > 0) auditPinned(*mapping);
    }
    CISTERN_CHECK(current_found && pins == page->pins);
  }
  for (const Mapping* mapping = oldest_; mapping; mapping = mapping->beside.younger, ++stale) {
    CISTERN_CHECK(mapping->removable() &&
                  (mapping->beside.younger ? mapping->beside.younger->beside.older : youngest_));
  }
  for (const auto& range : ranges_) {
    CISTERN_CHECK(range->bytes == range->units() * kUnit && range->bytes <= range->reserved_bytes);
    for (const Mapping* mapping : range->slots) slots += mapping ? 1 : 0;
  }
  std::size_t spares = 0;
  for (const PhysicalPage* page = spares_; page; page = page->next_spare, ++spares) {
    CISTERN_CHECK(page->spare && page->mappings.empty());
  }
  CISTERN_CHECK(spares == without_mapping);
  CISTERN_CHECK(slots == covered && mappings == mappings_ && bytes == bytes_);
  CISTERN_CHECK(stale == stale_ && stale == removable);
}

}  // namespace cistern::pages
