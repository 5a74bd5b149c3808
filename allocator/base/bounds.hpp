// Bounds of what is remembered, and of what one request does for others.
//
// A bound decides how well something works, never whether it is right. A full record of last uses
// errs to the later use, for one. The build with CISTERN_TIGHT_BOUNDS makes each bound 4, so that
// tests exceed all of them.
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
