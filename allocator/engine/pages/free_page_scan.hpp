// Which of a heap's pages lie wholly free at this moment, and so could serve elsewhere: within
// their pool, or, but for those that a graph reaches (PhysicalPage::mayLeave), anywhere.
#pragma once

#include <vector>

#include "allocator/engine/pages/page.hpp"

namespace cistern::pages {

/// A picture of one heap, good until its lock is given up. Marks what it finds: a mapping was found
/// free  <=>  found(mapping), and then mapping.found.in is the free block around it, and
/// mapping.last_use says when any part of the page was used last.
class FreePageScan {
 public:
  /// `last`: the number of the scan before. Throws std::bad_alloc.
  FreePageScan(Heap& heap, std::uint64_t& last) CISTERN_REQUIRES(heap.mutex());

  /// The mappings of wholly free pages, small ones' and large ones'.
  const std::vector<Mapping*>& freeMappings() const { return free_; }
  bool found(const Mapping& mapping) const { return mapping.found.by == number_; }
  /// Whether the page could serve elsewhere in its pool: it lies wholly free where it is now, or
  /// this heap has put it aside.
  bool mayMove(const PhysicalPage& page) const {
    if (page.aside) return page.counted_by == &heap_;
    return page.current != nullptr && found(*page.current);
  }

 private:
  void stampRecent(Heap& heap) CISTERN_REQUIRES(heap.mutex());
  void note(Heap& heap, Block& block) CISTERN_REQUIRES(heap.mutex());

  const Heap& heap_;
  const std::uint64_t number_;
  std::vector<Mapping*> free_;
};

}  // namespace cistern::pages
