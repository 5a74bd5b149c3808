// All pages, mappings and ranges of an allocator, and the stale mappings that nobody holds in the
// order of their age. Makes no device call and knows no heap's lock: it is the ledger that the rest
// of this folder writes. Guarded by the backing's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/core/pool.hpp"
#include "allocator/engine/pages/page.hpp"
#include "allocator/hooks/hooked_memory.hpp"

namespace cistern::pages {

class MappingTable {
 public:
  /// `log`, if there is one, records which mappings become current, and cease to be.
  /// `hooks`, if there are some, hear of those that the device has made.
  explicit MappingTable(MemoryLog* log = nullptr, MemoryHooks* hooks = nullptr)
      : log_(log), hooks_(hooks) {}

  /// Takes the first of `pages` over, to which nothing is mapped yet.
  PhysicalPage& adopt(std::list<PhysicalPage>& pages) noexcept {
    pages_.splice(pages_.begin(), pages, pages.begin());
    pages_.front().self = pages_.begin();
    return pages_.front();
  }
  /// Pre: it has no mapping.
  void removePage(PhysicalPage& page) noexcept {
    CISTERN_CHECK(page.mappings.empty() && page.current == nullptr);
    pages_.erase(page.self);
  }

  /// A stale mapping of the page at that unit, last used in an epoch that is complete, the youngest
  /// of all. Pre: the units are in the range and empty. Throws std::bad_alloc, changing nothing.
  Mapping& addMapping(PhysicalPage& page, PageRange& range, std::uint32_t unit) {
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
  /// Pre: removable.
  void removeMapping(Mapping& mapping) noexcept {
    CISTERN_CHECK(mapping.removable());
    for (std::uint32_t u = mapping.unit; u < mapping.end_unit; ++u)
      mapping.range->slots[u] = nullptr;
    std::erase(mapping.page->mappings, &mapping);
    stale_.erase(mapping.self);
  }
  /// The mapping goes once hooks have heard of that. Nobody takes it back into use before. Pre:
  /// stale, or its page falls asleep.
  void withdraw(Mapping& mapping) noexcept {
    if (mapping.removable()) used_.splice(used_.end(), stale_, mapping.self);
    mapping.withdrawn = true;
    mapping.accessible = mapping.at_rest = false;
  }
  /// Ends that.
  void endWithdrawal(Mapping& mapping) noexcept {
    if (std::exchange(mapping.withdrawn, false)) noteStale(mapping);
  }
  /// Whether the device was called for a change of the current mapping. The log is told.
  enum class Device : std::uint8_t { kCalled, kNotCalled };

  /// The page is reached through this mapping from now on. Pre: stale, and the page has no current
  /// one.
  void makeCurrent(Mapping& mapping, Device device = Device::kCalled) noexcept {
    CISTERN_CHECK(mapping.page->current == nullptr);
    if (mapping.removable()) used_.splice(used_.end(), stale_, mapping.self);
    mapping.page->current = &mapping;
    pages_.splice(pages_.end(), pages_, mapping.page->self);
    tell(MemoryAction::kPageMap, mapping, device);
  }
  /// Pre: current, and its last use is noted. It becomes the youngest of the stale ones.
  void makeStale(Mapping& mapping, Device device = Device::kNotCalled) noexcept {
    CISTERN_CHECK(mapping.isCurrent());
    mapping.page->current = nullptr;
    pages_.splice(pages_.begin(), pages_, mapping.page->self);
    noteStale(mapping);
    tell(MemoryAction::kPageUnmap, mapping, device);
  }

  /// The page's home is this mapping from now on.
  void makeHome(Mapping& mapping) noexcept {
    std::vector<Mapping*>& all = mapping.page->mappings;
    all.front()->at_rest = false;
    std::iter_swap(all.begin(), std::ranges::find(all, &mapping));
  }

  /// Adds one hold of that kind to the mapping. Pre: it is current.
  void hold(Mapping& mapping, HoldCounts::Kind kind) noexcept {
    CISTERN_CHECK(mapping.isCurrent());
    if (kind == &HoldCounts::fixed && mapping.holds.fixed == 0) fixed_bytes_ += mapping.bytes();
    ++(mapping.holds.*kind);
    ++(mapping.page->holds.*kind);
  }
  /// Removes one hold of that kind.
  void letGo(Mapping& mapping, HoldCounts::Kind kind) noexcept {
    CISTERN_CHECK(mapping.holds.*kind > 0);
    --(mapping.holds.*kind);
    --(mapping.page->holds.*kind);
    if (kind == &HoldCounts::fixed && mapping.holds.fixed == 0) fixed_bytes_ -= mapping.bytes();
    noteStale(mapping);
  }

  /// The page's memory is away from now on, or there again. Pre: it lies in a heap.
  void setAsleep(PhysicalPage& page, bool asleep) noexcept {
    page.asleep = asleep;
    for (Mapping* mapping : page.mappings) mapping->accessible = !asleep;
    tell(asleep ? MemoryAction::kPageUnmap : MemoryAction::kPageMap, *page.current,
         Device::kCalled);
  }
  /// The page goes, and its mapping. Pre: asleep, not made; nobody holds it.
  void forget(PhysicalPage& page) noexcept {
    CISTERN_CHECK(page.asleep && !page.made);
    noteStale(*std::exchange(page.current, nullptr));
    while (!page.mappings.empty()) removeMapping(*page.mappings.back());
    removePage(page);
  }
  /// The first page becomes as large as both are. Pre: as forget(), of both; each has one mapping,
  /// and the second lies behind the first.
  void join(PhysicalPage& first, PhysicalPage& second) noexcept {
    Mapping& at = *first.current;
    std::uint32_t unit = at.end_unit;
    first.units += second.units;
    first.has_home = first.has_home && second.has_home;
    at.end_unit += second.units;
    forget(second);
    for (; unit < at.end_unit; ++unit) at.range->slots[unit] = &at;
  }

  /// The bytes of the mappings that holds of the program's keep current.
  std::uint64_t fixedBytes() const { return fixed_bytes_; }

  PageRange& addRange() { return ranges_.emplace_back(); }
  const std::list<PageRange>& ranges() const { return ranges_; }
  /// All pages. Those without a current mapping come first.
  std::list<PhysicalPage>& pages() { return pages_; }
  const std::list<PhysicalPage>& pages() const { return pages_; }
  /// The stale mappings that nobody holds, the oldest first.
  std::list<Mapping>& staleMappings() { return stale_; }
  const std::list<Mapping>& staleMappings() const { return stale_; }
  std::size_t hostBytes() const {
    constexpr std::size_t kNode = 2 * sizeof(void*);
    std::size_t bytes = pages_.size() * (sizeof(PhysicalPage) + kNode) +
                        (stale_.size() + used_.size()) * (sizeof(Mapping) + kNode + sizeof(void*));
    for (const PageRange& range : ranges_)
      bytes += sizeof(PageRange) + kNode + range.slots.size() * sizeof(void*);
    return bytes;
  }

  /// Checks what page.hpp promises; aborts on a broken invariant.
  void audit() const {
    std::size_t mappings = 0, removable = 0;
    std::uint64_t covered = 0, slots = 0, fixed_bytes = 0;
    bool placed_found = false;
    for (const PhysicalPage& page : pages_) {
      bool current_found = page.current == nullptr;
      HoldCounts holds;
      for (const Mapping* mapping : page.mappings) {
        CISTERN_CHECK(mapping->page == &page && mapping->units() == page.units);
        CISTERN_CHECK(mapping->end_unit <= mapping->range->units());
        for (std::uint32_t u = mapping->unit; u < mapping->end_unit; ++u)
          CISTERN_CHECK(mapping->range->slots[u] == mapping);
        CISTERN_CHECK(!mapping->at_rest || mapping->isHome());
        current_found |= mapping->isCurrent();
        covered += mapping->units();
        ++mappings;
        removable += mapping->removable() ? 1 : 0;
        holds.graphs += mapping->holds.graphs;
        holds.exports += mapping->holds.exports;
        holds.fixed += mapping->holds.fixed;
        CISTERN_CHECK(mapping->holds.fixed == 0 || mapping->isCurrent());
        fixed_bytes += mapping->holds.fixed != 0 ? mapping->bytes() : 0;
        CISTERN_CHECK(!mapping->withdrawn ||
                      (!mapping->accessible && (page.asleep || !mapping->isCurrent())));
        CISTERN_CHECK(page.asleep ? !mapping->accessible && (page.made || !mapping->mapped)
                                  : mapping->mapped);
        if (!mapping->holds.any()) continue;
        // Somebody reaches the page here: it is mapped, and in use in this pool or nowhere.
        CISTERN_CHECK((mapping->accessible || page.asleep) && page.current != nullptr);
        CISTERN_CHECK(&page.current->range->home->pool() == &mapping->range->home->pool());
      }
      CISTERN_CHECK(current_found && holds == page.holds);
      CISTERN_CHECK(page.asleep ? page.current != nullptr : page.made);
      placed_found |= page.current != nullptr;
      CISTERN_CHECK(placed_found == (page.current != nullptr));
    }
    for (const PageRange& range : ranges_) {
      CISTERN_CHECK(range.bytes == range.units() * kUnit && range.bytes <= range.reserved_bytes);
      for (const Mapping* mapping : range.slots) slots += mapping ? 1 : 0;
    }
    CISTERN_CHECK(slots == covered && mappings == stale_.size() + used_.size());
    CISTERN_CHECK(std::ranges::all_of(stale_, &Mapping::removable));
    CISTERN_CHECK(removable == stale_.size());
    CISTERN_CHECK(fixed_bytes == fixed_bytes_);
  }

 private:
  void tell(MemoryAction action, const Mapping& mapping, Device device) noexcept {
    if (log_ == nullptr || !log_->on()) return;
    const bool made = action == MemoryAction::kPageMap && device == Device::kCalled;
    if (made && hooks_ != nullptr && hooks_->on()) hooks_->came(mapping.deviceAddress());
    note(*log_, action, mapping.deviceAddress(), mapping.bytes(), *mapping.range->home,
         locationOf(mapping.page->kind), device == Device::kNotCalled);
  }
  void noteStale(Mapping& mapping) noexcept {
    if (mapping.removable()) stale_.splice(stale_.end(), used_, mapping.self);
  }

  MemoryLog* const log_;
  MemoryHooks* const hooks_;
  std::list<PhysicalPage> pages_;
  std::list<PageRange> ranges_;
  std::list<Mapping> stale_;  ///< removable, the oldest first
  std::list<Mapping> used_;   ///< the others: current, held or withdrawn
  std::uint64_t fixed_bytes_ = 0;
};

}  // namespace cistern::pages
