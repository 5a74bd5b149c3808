#include "allocator/engine/pages/mapping_table.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"

namespace cistern::pages {
namespace {

// Among its page's mappings.
auto placeOf(const Mapping& mapping) {
  return std::ranges::find(mapping.page->mappings, &mapping, &std::unique_ptr<Mapping>::get);
}

}  // namespace

PhysicalPage& MappingTable::addPage(Page handle, std::uint32_t units) {
  PhysicalPage& page = *pages_.emplace_back(std::make_unique<PhysicalPage>());
  page.handle = handle;
  page.units = units;
  page.index = pages_.size() - 1;
  bytes_ += page.bytes();
  return page;
}

void MappingTable::removePage(PhysicalPage& page) noexcept {
  CISTERN_CHECK(page.mappings.empty() && page.current == nullptr);
  setSpare(page, false);
  bytes_ -= page.bytes();
  const std::size_t index = page.index;
  pages_.back()->index = index;
  std::swap(pages_[index], pages_.back());
  pages_.pop_back();
}

Mapping& MappingTable::addMapping(PhysicalPage& page, PageRange& range, std::uint32_t unit) {
  Mapping& mapping = *page.mappings.emplace_back(std::make_unique<Mapping>());
  mapping.page = &page;
  mapping.range = &range;
  mapping.unit = unit;
  mapping.end_unit = (unit + page.units) & 0x7fffffffu;
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
  page.mappings.erase(placeOf(mapping));
  if (page.mappings.empty()) setSpare(page, true);
  --mappings_;
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
  std::iter_swap(mapping.page->mappings.begin(), placeOf(mapping));
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

void MappingTable::setSpare(PhysicalPage& page, bool spare) noexcept {
  spares_ += std::size_t(spare) - std::size_t(page.spare);
  page.spare = spare;
}

// Hardly ever is there any.
PhysicalPage* MappingTable::findSpare(std::uint32_t most_units) const {
  if (spares_ == 0) return nullptr;
  const auto fits = [&](const auto& page) {
    return page->spare && page->mappings.empty() && page->units <= most_units;
  };
  const auto found = std::ranges::find_if(pages_, fits);
  return found != pages_.end() ? found->get() : nullptr;
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
  std::size_t mappings = 0, stale = 0, removable = 0, spares = 0;
  std::uint64_t bytes = 0, covered = 0, slots = 0;
  for (const auto& page : pages_) {
    CISTERN_CHECK(pages_[page->index] == page);
    CISTERN_CHECK(page->spare ? page->current == nullptr : !page->mappings.empty());
    bytes += page->bytes();
    spares += page->spare ? 1 : 0;
    bool current_found = page->current == nullptr;
    std::uint32_t pins = 0;
    for (const auto& mapping : page->mappings) {
      CISTERN_CHECK(mapping->page == page.get() && mapping->units() == page->units);
      CISTERN_CHECK(mapping->endUnit() <= mapping->range->units());
      for (std::uint32_t u = mapping->unit; u < mapping->endUnit(); ++u)
        CISTERN_CHECK(mapping->range->slots[u] == mapping.get());
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
  CISTERN_CHECK(slots == covered && mappings == mappings_ && bytes == bytes_);
  CISTERN_CHECK(stale == stale_ && stale == removable && spares == spares_);
}

}  // namespace cistern::pages
