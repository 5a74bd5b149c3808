// How large the page is that comes into a gap. Under the backing's lock.
#pragma once

#include "allocator/engine/pages/reserve.hpp"

namespace cistern::pages {

/// The units of a new page at the beginning of the gap. `pressed`: the device or the limit has
/// refused, so that time is no matter now.
std::uint32_t newPageUnits(const Ground& ground, const Request& request, const Gap& gap,
                           bool pressed);

}  // namespace cistern::pages
