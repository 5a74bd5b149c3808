// The hooks of one allocator. No lock is held while one runs, except that the tidier is called with
// one at the last resort (Tidying).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/hooks/hook_list.hpp"
#include "allocator/hooks/tell_misuse.hpp"
#include "cistern/report.hpp"
#include "cistern/sleep.hpp"

namespace cistern {

/// Why pools are to let go of what nobody uses any more. With kMiss, a request has missed. With
/// kEmptyCache, the cache is emptied: they wait if nothing less than the whole device can tell.
/// With kEmptied, it has been emptied, so that pools may have lost their last memory. With
/// kLastResort, memory has run out: they wait for whatever it takes. With kLastResort the caller
/// holds a lock, under which the program must not be called. So they are called again without it.
enum class Tidying : std::uint8_t { kMiss, kEmptyCache, kEmptied, kLastResort };

struct Hooks {
  /// Each answers whether it has freed something.
  HookList<bool, const MemoryShortage&> reclaim{"registerReclaimCallback"};
  HookList<void, const OutOfMemoryReport&> out_of_memory{"attachOutOfMemoryObserver"};
  HookList<void, MempoolId_t> pool_released{"attachPoolReleasedObserver", true};
  HookList<void, const Misuse&> misuse{"setMisuseHook", true};
  HookList<void, const SleepNotice&> sleep{"attachSleepHook", true};
  HookList<bool, Tidying> tidy{"setTidier", true};
  /// How much the tidier would find, in number: retired graphs, draining pools, and releases that
  /// observers were not told of. Whoever adds some counts it. A miss calls no tidier for nothing.
  /// A tidier that keeps no count adds one for good.
  std::atomic<std::size_t> untidy{0};
};

}  // namespace cistern
