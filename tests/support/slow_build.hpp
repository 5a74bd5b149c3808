// Whether every step of a test costs ten times as much and more, so that it takes fewer.
#pragma once

#include "allocator/base/sanitizers.hpp"

namespace cistern::test {

#if defined(CISTERN_AUDIT_BUILD) || defined(CISTERN_THREAD_SANITIZER) || \
    defined(CISTERN_ADDRESS_SANITIZER)
inline constexpr bool kSlowBuild = true;  ///< audited or sanitized
#else
inline constexpr bool kSlowBuild = false;
#endif

}  // namespace cistern::test
