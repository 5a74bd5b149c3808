// The hooks of one allocator. They are called with no lock held, except that the tidier is called
// with one at the last resort (Tidying).
#pragma once

#include <cstdint>

#include "allocator/engine/ground/hook_list.hpp"
#include "cistern/sleep.hpp"

namespace cistern {

/// Why pools are to let go of what nobody uses any more. With kMiss, a request has missed. With
/// kEmptyCache, the cache is emptied: they wait if nothing less than the whole device can tell.
/// With kEmptied, it has been emptied, so that pools may have lost their last memory. With
/// kLastResort, memory has run out: they wait for whatever it takes. With kLastResort the caller
/// holds a lock, under which the program must not be called. So they are called again without it.
enum class Tidying : std::uint8_t { kMiss, kEmptyCache, kEmptied, kLastResort };

/// The hooks of one allocator.
struct Hooks {
  /// Each answers whether it has freed something.
  HookList<bool, const MemoryShortage&> reclaim{"registerReclaimCallback"};
  HookList<void, const OutOfMemoryReport&> out_of_memory{"attachOutOfMemoryObserver"};
  HookList<void, MempoolId_t> pool_released{"attachPoolReleasedObserver", true};
  HookList<void, const Misuse&> misuse{"setMisuseHook", true};
  HookList<void, const SleepNotice&> sleep{"attachSleepHook", true};
  HookList<bool, Tidying> tidy{"setTidier", true};
};

}  // namespace cistern
