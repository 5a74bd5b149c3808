// Mechanisms that save memory or time, and that could be left out. The program bench/ablation.cpp
// switches them off one at a time, to see what each saves. In the ablation build only; other builds
// have nothing to switch.
#pragma once

#include <atomic>

namespace cistern {

/// The code of each mechanism checks `without` for it.
enum class Mechanism : unsigned {
  kNone,
  kRecycling,
  kOthersPages,
  kOwnForLarge,
  kHoming,
  kFlushAtLowWater,
  kLowWaterForgets,
  kLowWaterSlack,
  kRounds,
  kFreeze,
  kBehindStale,
  kFreeCut,
  kFewestRevivals,
  kFreshWindow,
  kCostController,
  kPlainCredit,
  kRootOfRequest,
  kPartOfGap,
  kPartOfLimit,
  kPowersOfTwo,
  kEvenPages,
  kReachBeyond,
  kLargestFitting,
  kOldestFirst,
  kSmallestBlock,
  kPageEpochs,
  kSeveralMarks,
  kMarksAtFrees,
  kEarlyRefresh,
  kHelpBehind,
  kUnmapLater,
  kBackoff,
  kStacksFirst,
  kLastBack,
  kExpectRelease,
};

#if defined(CISTERN_ABLATION_BUILD)
/// The one that is switched off.
inline std::atomic<Mechanism> switched_off{Mechanism::kNone};
inline bool without(Mechanism mechanism) {
  return switched_off.load(std::memory_order_relaxed) == mechanism;
}
#else
constexpr bool without(Mechanism) { return false; }
#endif

}  // namespace cistern
