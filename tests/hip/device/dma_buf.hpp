// A dma-buf: a descriptor that names pages. It is a small memory file, which says where in the
// played memory the pages lie.
#pragma once

#include <cstdint>
#include <memory>

#include "tests/hip/device/memory.hpp"

namespace played {

/// A descriptor, or -1.
int exportPages(const Pages& pages);
/// Null if the descriptor is no dma-buf, or names pages that there are no more in this process.
std::shared_ptr<Pages> importPages(const Memory& memory, int descriptor);

}  // namespace played
