// Bounds of what is remembered, and of what one request does for others.
//
// A bound decides how well something works, and never whether it is right: a record of last uses
// that is full errs to the later use. The build with CISTERN_TIGHT_BOUNDS makes each bound 4, so
// that tests drive all of them over it.
#pragma once

#include <cstddef>

namespace cistern {

#if defined(CISTERN_TIGHT_BOUNDS)
inline constexpr bool kTightBounds = true;
#else
inline constexpr bool kTightBounds = false;
#endif

/// As many as `usual`, or 4 in that build.
constexpr std::size_t bound(std::size_t usual) { return kTightBounds ? 4 : usual; }

}  // namespace cistern
