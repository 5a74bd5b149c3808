// Where the pages that serve a miss may come from.
#pragma once

#include <cstdint>

namespace cistern {

/// Whose pages may come to serve a miss, apart from new ones and the heap's own.
enum class PagesFrom : std::uint8_t {
  kComplete,  ///< of heaps that give to this one's pool, if their last use is complete
  kQueued,    ///< and, at last, those whose last use is queued, in the order of streams
  kLenders,   ///< complete ones, of pools that lend too
};

}  // namespace cistern
