// Who hears of a misuse: the program's hook, and a call that answers with a status.
#pragma once

#include <new>
#include <optional>

#include "allocator/base/thread_scope.hpp"
#include "allocator/hooks/hook_list.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// For a call that frees and answers with a status. While it lives, it keeps a misuse of that
/// pointer by this thread. The program's own hook is called all the same; the default one, which
/// prints, is not.
class MisuseScope : public ThreadScope<MisuseScope> {
 public:
  explicit MisuseScope(const void* pointer) noexcept : pointer_(toAddress(pointer)) {}

  /// The misuse that this thread was told of, if any. A hook's misuse of another pointer meanwhile
  /// is not this scope's.
  const std::optional<Misuse>& misuse() const { return misuse_; }
  /// For tellMisuse: false if nobody on this thread waits for it.
  static bool tell(const Misuse& misuse) noexcept try {
    MisuseScope* const scope = innermost();
    if (scope == nullptr || scope->pointer_ != misuse.pointer || scope->misuse_) return false;
    scope->misuse_ = misuse;
    return true;
  } catch (const std::bad_alloc&) {
    return false;  // it is printed, then
  }

 private:
  const Address pointer_;
  std::optional<Misuse> misuse_;
};

/// Tells the program's hook, or else defaultMisuseHook, and the scope that the thread is in.
inline void tellMisuse(HookList<void, const Misuse&>& hook, const Misuse& misuse) noexcept {
  const bool told = MisuseScope::tell(misuse);
  if (!hook(misuse) && !told) defaultMisuseHook(misuse);
}

}  // namespace cistern
