// The device calls that bring pages to their places, and take them away again. Under the backing's
// lock, and no other.
#pragma once

#include "allocator/engine/pages/reserve.hpp"

namespace cistern::pages {

/// Maps each page that is not revived at its place. False when the device refuses; then some are
/// mapped. Throws std::bad_alloc.
bool mapAll(Ground& ground, Reservation& reserved);
/// Unmaps them, and gives pages that were in no heap back to the device. A page that the device
/// does not take back is `heap`'s in the books.
void unmapAll(Ground& ground, Reservation& reserved, Heap& heap, SizeKind kind) noexcept;

}  // namespace cistern::pages
