// The memory that a refused request lacks, for the report on it.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/engine/pages/pages_state.hpp"

namespace cistern::pages {

struct Lack {
  std::uint64_t growth = 0;  ///< bytes of the pages that have to be made for the request
  std::uint64_t free = 0;    ///< bytes of pages that go back to the device first
};

/// The least growth that serves the request in `own`, its heap, once the free pages of that kind in
/// `heaps` are back; with kOverflow, those of the device, too. Null: it has none yet. `incomplete`:
/// also pages that queued work may still use. Throws std::bad_alloc.
Lack lackOf(State& state, Heap* own, const Request& request, const std::vector<Heap*>& heaps,
            PageKind kind, bool incomplete);

}  // namespace cistern::pages
