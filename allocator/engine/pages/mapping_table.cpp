#include "allocator/engine/pages/mapping_table.hpp"

#include <algorithm>
#include <iterator>

#include "allocator/base/check.hpp"

namespace cistern::pages {
PhysicalPage& MappingTable::addPage(Page handle, std::uint32_t units) {
  PhysicalPage& page = pages_.emplace_back();
  page.self = std::prev(pages_.end());
  page.handle = handle;
  page.units = units;
  return page;
}

void MappingTable::removePage(PhysicalPage& page) noexcept {
  CISTERN_CHECK(page.mappings.empty() && page.current == nullptr);
  pages_.erase(page.self);
}

Mapping& MappingTable::addMapping(PhysicalPage& page, PageRange& range, std::uint32_t unit) {
  std::vector<Mapping*>& all = page.mappings;
  if (all.size() == all.capacity()) all.reserve(2 * all.size() + 1);
  Mapping& mapping = stale_.emplace_back();
  all.push_back(&mapping);
  mapping.self = std::prev(stale_.end());
  mapping.page = &page;
  mapping.range = &range;
  mapping.unit = unit;
  mapping.end_unit = unit + page.units;
  for (std::uint32_t u = unit; u < mapping.end_unit; ++u) {
    CISTERN_ASSERT(range.slots[u] == nullptr);
    range.slots[u] = &mapping;
  }
  range.touched = std::max(range.touched, mapping.end_unit);
  return mapping;
}

void MappingTable::removeMapping(Mapping& mapping) noexcept {
  CISTERN_CHECK(mapping.removable());
  for (std::uint32_t u = mapping.unit; u < mapping.end_unit; ++u) mapping.range->slots[u] = nullptr;
  std::erase(mapping.page->mappings, &mapping);
  stale_.erase(mapping.self);
}

void MappingTable::makeCurrent(Mapping& mapping) noexcept {
  CISTERN_CHECK(mapping.page->current == nullptr);
  if (mapping.removable()) used_.splice(used_.end(), stale_, mapping.self);
  mapping.page->current = &mapping;
  tell(MemoryAction::kPageMap, mapping);
}

void MappingTable::makeStale(Mapping& mapping) noexcept {
  CISTERN_CHECK(mapping.isCurrent());
  mapping.page->current = nullptr;
  noteStale(mapping);
  tell(MemoryAction::kPageUnmap, mapping);
}

void MappingTable::noteStale(Mapping& mapping) noexcept {
  if (mapping.removable()) stale_.splice(stale_.end(), used_, mapping.self);
}

void MappingTable::makeHome(Mapping& mapping) noexcept {
  std::vector<Mapping*>& all = mapping.page->mappings;
  std::iter_swap(all.begin(), std::ranges::find(all, &mapping));
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
  noteStale(mapping);
}

std::size_t MappingTable::hostBytes() const {
  constexpr std::size_t kNode = 2 * sizeof(void*);
  std::size_t bytes = pages_.size() * (sizeof(PhysicalPage) + kNode) +
                      (stale_.size() + used_.size()) * (sizeof(Mapping) + kNode + sizeof(void*));
  for (const PageRange& range : ranges_)
    bytes += sizeof(PageRange) + kNode + range.slots.size() * sizeof(void*);
  return bytes;
}

// A graph reaches the page here: it is mapped, and in use in this pool or nowhere.
void MappingTable::auditPinned(const Mapping& mapping) {
  const Mapping* current = mapping.page->current;
  CISTERN_CHECK(mapping.accessible && current != nullptr);
  CISTERN_CHECK(&current->range->home->pool() == &mapping.range->home->pool());
}

void MappingTable::audit() const {
  std::size_t mappings = 0, removable = 0;
  std::uint64_t covered = 0, slots = 0;
  for (const PhysicalPage& page : pages_) {
    bool current_found = page.current == nullptr;
    std::uint32_t pins = 0;
    for (const Mapping* mapping : page.mappings) {
      CISTERN_CHECK(mapping->page == &page && mapping->units() == page.units);
      CISTERN_CHECK(mapping->end_unit <= mapping->range->units());
      for (std::uint32_t u = mapping->unit; u < mapping->end_unit; ++u)
        CISTERN_CHECK(mapping->range->slots[u] == mapping);
      current_found |= mapping->isCurrent();
      covered += mapping->units();
      ++mappings;
      removable += mapping->removable() ? 1 : 0;
      pins += mapping->pins;
      if (mapping->pins > 0) auditPinned(*mapping);
    }
    CISTERN_CHECK(current_found && pins == page.pins);
  }
  for (const PageRange& range : ranges_) {
    CISTERN_CHECK(range.bytes == range.units() * kUnit && range.bytes <= range.reserved_bytes);
    for (const Mapping* mapping : range.slots) slots += mapping ? 1 : 0;
  }
  CISTERN_CHECK(slots == covered && mappings == stale_.size() + used_.size());
  CISTERN_CHECK(std::ranges::all_of(stale_, &Mapping::removable));
  CISTERN_CHECK(removable == stale_.size());
}

}  // namespace cistern::pages
