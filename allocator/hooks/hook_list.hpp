// Functions of the program, and of pools/, that are called when something happens: how they are
// kept, called and taken away. No lock of the list is held while one runs. While one runs, requests
// that it makes on the same thread call none of its own list, unless that nests.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/thread_scope.hpp"
#include "cistern/error.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// While it lives, this thread is inside a hook of the list. The list is not called for its own
/// requests, unless it nests: it would never end.
class HookScope : public ThreadScope<HookScope> {
 public:
  /// `hook`: an address that stands for it.
  explicit HookScope(const void* hook) noexcept : hook_(hook) {}

  static bool inside(const void* hook) noexcept {
    return insideAny([hook](const HookScope& scope) { return scope.hook_ == hook; });
  }

 private:
  const void* const hook_;
};

/// Unique in the process.
inline HookId nextHookId() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return {last.fetch_add(1, std::memory_order_relaxed) + 1};
}

/// The functions that were given with one verb, called in the order in which they came.
/// Thread-safe.
template <class Answer, class... Told>
class HookList {
 public:
  using Hook = std::function<Answer(Told...)>;

  /// `nests`: they are called for their own requests, too.
  explicit HookList(const char* verb, bool nests = false) : verb_(verb), nests_(nests) {}

  bool any() const { return any_; }
  /// Throws std::bad_alloc and, for an empty function, InvalidArgument, changing nothing.
  HookId add(Hook hook) {
    if (!hook) throw InvalidArgument(std::string(verb_) + ": the function is empty");
    const auto kept = std::make_shared<Kept>(std::move(hook));
    const MutexLock lock(mutex_);
    change([&](Entries& entries) { entries.push_back(kept); });
    return kept->id;
  }
  /// Takes one away. Returns when no other thread is in a call that it is part of. Then what it
  /// uses may be destroyed. A thread that is in such a call itself does not wait. False if the list
  /// has none of that name. Throws std::bad_alloc, changing nothing.
  bool remove(HookId id) {
    std::shared_ptr<Kept> gone;
    {
      const MutexLock lock(mutex_);
      const auto found = std::ranges::find(*hooks_, id, &Kept::id);
      if (found == hooks_->end()) return false;
      gone = *found;
      if (hooks_->size() == 1) {  // takes no host memory
        hooks_ = none_;
        any_ = false;
      } else {
        change([&](Entries& entries) { std::erase(entries, gone); });
      }
    }
    gone->removed = true;  // for a call that goes through the list as it was
    if (HookScope::inside(this)) return true;
    gone->awaited = true;
    while (const std::uint32_t calls = gone->calls) gone->calls.wait(calls);
    return true;
  }
  /// Keeps this one alone from now on; none if it is empty. Throws std::bad_alloc, changing
  /// nothing.
  void set(Hook hook) {
    Entries only;  // then those of before, which go without the lock
    if (hook) only.push_back(std::make_shared<Kept>(std::move(hook)));
    const MutexLock lock(mutex_);
    change([&](Entries& entries) { entries.swap(only); });
  }
  /// Whether any has answered yes, or, if they answer nothing, whether there is any. An exception
  /// of one leaves this, and those after it are not called.
  bool operator()(Told... told) {
    bool any = false;
    visit([&](const Hook& hook) {
      if constexpr (std::is_void_v<Answer>) {
        any = true;
        hook(told...);
      } else {
        any |= hook(told...);
      }
    });
    return any;
  }
  /// Calls each, also those after one that throws. Returns the first exception, or null.
  std::exception_ptr callEach(Told... told) noexcept {
    std::exception_ptr first;
    visit([&](const Hook& hook) {
      try {
        (void)hook(told...);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    });
    return first;
  }

 private:
  struct Kept {
    explicit Kept(Hook given) : hook(std::move(given)) {}
    const HookId id = nextHookId();
    const Hook hook;
    std::atomic<std::uint32_t> calls{0};  ///< of the list, that it is part of and are under way
    std::atomic<bool> removed{false};     ///< it is not called any more
    std::atomic<bool> awaited{false};     ///< a thread that takes it away waits for these to end
  };
  using Entries = std::vector<std::shared_ptr<Kept>>;
  /// The list is replaced whole when it changes, so that calling them takes no copy. A copy of a
  /// function may take host memory, and some are called when the host may have none.
  using Hooks = std::shared_ptr<const Entries>;

  template <class Change>
  void change(Change change_entries) CISTERN_REQUIRES(mutex_) {
    auto changed = std::make_shared<Entries>(*hooks_);
    change_entries(*changed);
    hooks_ = std::move(changed);
    any_ = !hooks_->empty();
  }
  /// The hooks of the list while they are called.
  struct Call {
    explicit Call(HookList& list) : scope(&list) {
      const MutexLock lock(list.mutex_);
      hooks = list.hooks_;
      for (const auto& kept : *hooks) ++kept->calls;
    }
    ~Call() {
      for (const auto& kept : *hooks) {
        --kept->calls;
        if (kept->awaited) kept->calls.notify_all();
      }
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    const HookScope scope;
    Hooks hooks;
  };
  template <class Visit>
  void visit(Visit visit_hook) {
    if (!any_ || (!nests_ && HookScope::inside(this))) return;
    const Call call(*this);
    for (const auto& kept : *call.hooks) {
      if (!kept->removed) visit_hook(kept->hook);
    }
  }

  const char* const verb_;
  const bool nests_;
  const Hooks none_ = std::make_shared<const Entries>();
  Mutex mutex_{LockRank::kHooks};
  Hooks hooks_ CISTERN_GUARDED_BY(mutex_) = none_;
  std::atomic<bool> any_{false};  ///< whether there are: a miss takes no lock to find none
};

}  // namespace cistern
