// Who is told of a misuse. Who frees in a call that answers with a status: a misuse of that pointer
// by this thread is kept for it. The program's own hook is called all the same; the default one,
// which prints, is not.
#pragma once

#include <memory>

#include "allocator/base/mutex.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// While it lives, a misuse of `pointer` by this thread is noted. Three instructions that write, as
/// each of the C API's frees has one.
class MisuseScope {
 public:
  explicit MisuseScope(const void* pointer) noexcept : pointer_(pointer), outer_(awaited_) {
    awaited_ = pointer;
  }
  ~MisuseScope() { awaited_ = outer_; }
  MisuseScope(const MisuseScope&) = delete;
  MisuseScope& operator=(const MisuseScope&) = delete;

  /// Whether there was one. What hooks do meanwhile with other pointers is not this scope's.
  bool any() const { return awaited_ != pointer_; }
  /// The last that this thread was told of. Pre: any().
  static const Misuse& last();

  /// For MisuseTold: false where nobody on this thread waits to be told of it.
  static bool tell(const Misuse& misuse) noexcept;

 private:
  const void* const pointer_;
  const void* const outer_;
  inline static constinit thread_local const void* awaited_ = nullptr;
};

/// The program's misuse hook. Thread-safe.
class MisuseTold {
 public:
  /// Empty: defaultMisuseHook. Throws std::bad_alloc, changing nothing.
  void set(MisuseHook hook);
  /// Tells the hook, and the scope that the thread is in.
  void operator()(const Misuse& misuse) const noexcept;

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const MisuseHook> hook_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
