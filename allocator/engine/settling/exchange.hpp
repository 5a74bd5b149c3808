// Other physical memory comes behind the addresses of pages. What was in them comes along.
#pragma once

#include <vector>

#include "allocator/engine/engine.hpp"

namespace cistern {

/// Moves each page to memory of that kind, as far as such memory can be had. Returns the bytes that
/// have moved; a page whose calls fail stays as it was. Copies on `stream`, and waits for it.
///
/// Pre: each has a current mapping and no other, and no holds. Its heap is of the device or of
/// overflow, and `to` is one of these kinds, but not the page's. No work that is queued, or comes
/// meanwhile, uses the pages. Throws std::bad_alloc; then no page is
/// halfway.
std::uint64_t exchangeMemory(Engine& engine, const std::vector<pages::PhysicalPage*>& pages,
                             PageKind to, Stream stream) CISTERN_REQUIRES(engine.pages.mutex());

}  // namespace cistern
