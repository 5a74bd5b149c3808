// The addresses that a heap places its blocks in: reserved once, far more of them than there is
// memory, and taken into the layout as they are needed. MappingTable owns the ranges. Under the
// backing's lock.
#pragma once

#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

/// Makes room for the whole request behind what the heap's newest range of its kind ever used, in
/// that range or in a new one. False when there is no room, and the heap has no range of the kind.
/// Throws std::bad_alloc.
bool makeRoom(Ground& ground, Heap& heap, const Request& request);

}  // namespace cistern::pages
