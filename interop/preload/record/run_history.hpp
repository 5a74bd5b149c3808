// The history of an allocator, in a file in the folder of the run, for `cistern run --report`.
#pragma once

#include "cistern/allocator.hpp"

namespace cistern::preload {

/// Records it if the run asks for it. If that cannot be, a line on stderr says so, and the program
/// goes on.
void recordForRun(CachingAllocator& allocator) noexcept;

}  // namespace cistern::preload
