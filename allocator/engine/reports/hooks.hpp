// Functions of the program, and of pools/, that are called when something happens. They are called
// with no lock held, and while one runs, what it asks for on the same thread does not call it
// again.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// Why pools are to let go of what nobody uses any more: a request has missed; the cache is
/// emptied, for which they wait where nothing less than the whole device can tell; or memory has
/// run out, for which they wait for whatever it takes. At the last a lock is held, under which the
/// program must not be called, and they are called again without one.
enum class Tidying : std::uint8_t { kMiss, kEmptyCache, kLastResort };

/// While it lives, this thread is inside a hook of the program, which is not called again for what
/// the hook itself asks for: it would never end.
class HookScope {
 public:
  /// `hook`: an address that stands for it.
  explicit HookScope(const void* hook) noexcept : hook_(hook), outer_(innermost_) {
    innermost_ = this;
  }
  ~HookScope() { innermost_ = outer_; }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

  static bool inside(const void* hook) noexcept {
    const HookScope* scope = innermost_;
    while (scope != nullptr && scope->hook_ != hook) scope = scope->outer_;
    return scope != nullptr;
  }

 private:
  const void* const hook_;
  const HookScope* const outer_;
  inline static constinit thread_local const HookScope* innermost_ = nullptr;
};

/// Thread-safe. Adding or setting throws std::bad_alloc, changing nothing, and InvalidArgument for
/// an empty function, which only the misuse hook and the tidier may be.
class Hooks {
 public:
  void addReclaim(std::function<bool()> callback);
  void addOutOfMemory(std::function<void(const OutOfMemoryReport&)> observer);
  void addPoolReleased(std::function<void(MempoolId_t)> observer);
  /// Empty: defaultMisuseHook.
  void setMisuse(MisuseHook hook);
  /// Returns when no thread is in the former one any more: what that one uses may be destroyed
  /// then.
  void setTidier(std::function<bool(Tidying)> tidier);

  /// Whether any callback has freed something. What one throws leaves this.
  bool reclaim();
  /// What an observer throws leaves this, and those after it are not called.
  void outOfMemory(const OutOfMemoryReport& report);
  void poolReleased(MempoolId_t id) noexcept;
  /// The scope that the thread is in is told too (misuse_scope.hpp).
  void misuse(const Misuse& misuse) const noexcept;
  /// What the tidier answers; false when there is none.
  bool tidy(Tidying why);

 private:
  /// Replaced whole when one is added, so that to call them takes no copy: a copy of a function may
  /// take host memory, and some are called where there need not be any.
  template <class Signature>
  using List = std::shared_ptr<const std::vector<std::function<Signature>>>;

  template <class Signature>
  void add(const char* verb, List<Signature>& list, std::function<Signature> hook);
  template <class Hook>
  std::shared_ptr<const Hook> current(const std::shared_ptr<const Hook>& hook) const {
    const MutexLock lock(mutex_);
    return hook;
  }

  mutable Mutex mutex_;
  List<bool()> reclaim_;
  List<void(const OutOfMemoryReport&)> out_of_memory_;
  List<void(MempoolId_t)> pool_released_;
  std::shared_ptr<const MisuseHook> misuse_;
  std::function<bool(Tidying)> tidier_ CISTERN_GUARDED_BY(mutex_);
  std::atomic<std::uint32_t> tidying_{0};  ///< threads in it
};

}  // namespace cistern
