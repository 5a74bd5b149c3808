// All pages, mappings and ranges of an allocator, and the stale mappings that nobody pins in the
// order of their age. Makes no device call and knows no heap's lock: it is the ledger that the rest
// of this folder writes. Guarded by the backing's lock.
#pragma once

#include <cstddef>
#include <list>

#include "allocator/engine/pages/page.hpp"
#include "allocator/engine/reports/memory_log.hpp"

namespace cistern::pages {

class MappingTable {
 public:
  /// `log`, if there is one, is told which mappings become current, and cease to be.
  explicit MappingTable(MemoryLog* log = nullptr) : log_(log) {}

  /// A page that nothing is mapped to yet. Throws std::bad_alloc, changing nothing.
  PhysicalPage& addPage(Page handle, std::uint32_t units);
  /// Pre: it has no mapping.
  void removePage(PhysicalPage& page) noexcept;

  /// A stale mapping of the page at that unit, last used in an epoch that is complete, the youngest
  /// of all. Pre: the units are in the range and empty. Throws std::bad_alloc, changing nothing.
  Mapping& addMapping(PhysicalPage& page, PageRange& range, std::uint32_t unit);
  /// Pre: removable.
  void removeMapping(Mapping& mapping) noexcept;
  /// The page is reached through this mapping from now on. Pre: stale, and the page has no current
  /// one.
  void makeCurrent(Mapping& mapping) noexcept;
  /// Pre: current, and its last use is noted. It becomes the youngest of the stale ones.
  void makeStale(Mapping& mapping) noexcept;

  /// The page's home is this mapping from now on.
  void makeHome(Mapping& mapping) noexcept;

  /// One graph more, or less, reaches the page through it. Pre: of pin: current.
  void pin(Mapping& mapping) noexcept;
  void unpin(Mapping& mapping) noexcept;

  PageRange& addRange() { return ranges_.emplace_back(); }
  const std::list<PageRange>& ranges() const { return ranges_; }
  std::list<PhysicalPage>& pages() { return pages_; }
  const std::list<PhysicalPage>& pages() const { return pages_; }
  /// Those that nobody pins, the oldest first.
  std::list<Mapping>& staleMappings() { return stale_; }
  const std::list<Mapping>& staleMappings() const { return stale_; }
  std::size_t hostBytes() const;

  /// Checks what page.hpp promises; aborts on a broken invariant.
  void audit() const;

 private:
  static void auditPinned(const Mapping& mapping);
  void tell(MemoryAction action, const Mapping& mapping) noexcept {
    if (log_) log_->note(action, mapping.deviceAddress(), mapping.bytes(), *mapping.range->home);
  }
  void noteStale(Mapping& mapping) noexcept;

  MemoryLog* const log_;
  std::list<PhysicalPage> pages_;
  std::list<PageRange> ranges_;
  std::list<Mapping> stale_;  ///< removable, in the order in which they became so
  std::list<Mapping> used_;   ///< the others: current, or pinned
};

}  // namespace cistern::pages
