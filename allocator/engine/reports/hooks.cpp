#include "allocator/engine/reports/hooks.hpp"

#include <new>

#include "allocator/base/thread_slots.hpp"

namespace cistern {
namespace {

struct LastMisuse {
  Misuse misuse;
};

}  // namespace

const Misuse& MisuseScope::last() { return ThreadSlot<LastMisuse>::mine().misuse; }

// Null is never misused, so that it can stand for a pointer that was.
bool MisuseScope::tell(const Misuse& misuse) noexcept {
  if (awaited_ == nullptr || toAddress(awaited_) != misuse.pointer) return false;
  try {
    ThreadSlot<LastMisuse>::mine().misuse = misuse;
  } catch (const std::bad_alloc&) {
    return false;  // it is printed, then
  }
  awaited_ = nullptr;
  return true;
}

void tellMisuse(HookList<void(const Misuse&)>& hook, const Misuse& misuse) noexcept {
  const bool told = MisuseScope::tell(misuse);
  if (!hook(misuse) && !told) defaultMisuseHook(misuse);
}

}  // namespace cistern
