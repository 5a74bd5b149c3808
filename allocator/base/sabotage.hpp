// Rules that a test may break on purpose, to see that a check would notice. In the audit build
// only; other builds have nothing to break.
#pragma once

#include <atomic>

namespace cistern {

enum class Rule : unsigned {
  kCompletion = 1,  ///< memory is safe for others only when its last use is complete
  kOrder = 2,       ///< a stream that takes memory still in use elsewhere waits for that use
  kUntold = 4,      ///< memory may be used on any known stream, not only on its own
  kPlaces = 8,      ///< a request goes where it was two rounds ago, not where it was in the last
  kFreeze = 16,     ///< a heap whose round does not come to rest freezes
};

#if defined(CISTERN_AUDIT_BUILD)
/// The rules that do not hold at the moment, or-ed.
inline std::atomic<unsigned> broken_rules{0};
inline bool broken(Rule rule) { return (broken_rules & unsigned(rule)) != 0; }
#else
constexpr bool broken(Rule) { return false; }
#endif

}  // namespace cistern
