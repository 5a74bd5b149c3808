// Whether every step of a test costs ten times as much and more, so that it takes fewer.
#pragma once

namespace cistern::test {

#if defined(CISTERN_AUDIT_BUILD) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSlowBuild = true;  ///< audited or sanitized
#else
inline constexpr bool kSlowBuild = false;
#endif

}  // namespace cistern::test
