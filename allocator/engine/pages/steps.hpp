// What a miss works out on its way: which pages come from where, out of which free blocks and holes
// its window is. One miss is served at a time, so that the vectors are kept from one to the next:
// what a miss needs of the host is there as a rule.
#pragma once

#include <vector>

#include "allocator/engine/pages/page.hpp"

namespace cistern::pages {

/// A page on its way to a place in the window.
struct Step {
  PhysicalPage* page = nullptr;
  std::uint32_t unit = 0;   ///< where in the window's range
  View* from = nullptr;     ///< null for a page that is new, was mapped nowhere, or was aside
  View* to = nullptr;       ///< set from the start when it is revived, else when it is mapped
  Heap* source = nullptr;   ///< where `from` belongs; null with it
  EpochMark last_use;       ///< of the source's
  std::uint32_t epoch = 0;  ///< what its memory is stamped with in this heap
  bool revived = false;
};

/// A free block that became part of the claimed window.
struct Piece {
  Address from, to;
  std::uint32_t epoch;
};

/// Units of the window without a page. One that comes may reach beyond `end`, up to `room_end`.
struct Gap {
  std::uint32_t at, end, room_end;
};

struct MoverScratch {
  std::vector<Step> steps;
  std::vector<Step> revived;  ///< with room for all of the window's
  std::vector<Step> taken;    ///< from one heap
  std::vector<Piece> pieces;
  std::vector<Gap> gaps;

  std::size_t hostBytes() const {
    return (steps.capacity() + revived.capacity() + taken.capacity()) * sizeof(Step) +
           pieces.capacity() * sizeof(Piece) + gaps.capacity() * sizeof(Gap);
  }
};

}  // namespace cistern::pages
