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
    const Entry entry{nextHookId(), std::make_shared<Kept>(std::move(hook))};
    const MutexLock lock(mutex_);
    change([&](Entries& entries) { entries.push_back(entry); });
    return entry.id;
  }
  /// Takes one away. Returns when no other thread is in a call that it is part of. Then what it
  /// uses may be destroyed. A thread that is in such a call itself does not wait. False if the list
  /// has none of that name. Throws std::bad_alloc, changing nothing.
  bool remove(HookId id) {
    std::shared_ptr<Kept> gone;
    {
      const MutexLock lock(mutex_);
      const auto is = [id](const Entry& entry) { return entry.id == id; };
      if (hooks_ == nullptr || std::ranges::none_of(*hooks_, is)) return false;
      gone = std::ranges::find_if(*hooks_, is)->kept;
      if (hooks_->size() == 1) {  // takes no host memory
        hooks_ = nullptr;
        any_ = false;
      } else {
        change([&](Entries& entries) { std::erase_if(entries, is); });
      }
    }
    if (HookScope::inside(this)) return true;
    while (const std::uint32_t calls = gone->calls) gone->calls.wait(calls);
    return true;
  }
  /// Keeps this one alone from now on; none if it is empty. Throws std::bad_alloc, changing
  /// nothing.
  void set(Hook hook) {
    Hooks only;
    if (hook) {
      const Entry entry{nextHookId(), std::make_shared<Kept>(std::move(hook))};
      only = std::make_shared<const Entries>(1, entry);
    }
    const MutexLock lock(mutex_);
    hooks_.swap(only);
    any_ = hooks_ != nullptr;
  }
  /// Whether any has answered yes, or, if they answer nothing, whether there is any. An exception
  /// of one leaves this, and those after it are not called.
  bool operator()(Told... told) {
    if (!any_ || (!nests_ && HookScope::inside(this))) return false;
    const Call call(*this);
    if (call.hooks == nullptr) return false;
    bool any = std::is_void_v<Answer>;
    for (const Entry& entry : *call.hooks) {
      if constexpr (std::is_void_v<Answer>) {
        entry.kept->hook(told...);
      } else {
        any |= entry.kept->hook(told...);
      }
    }
    return any;
  }

  /// Calls each, also those after one that throws. Returns the first exception, or null.
  std::exception_ptr callEach(Told... told) noexcept {
    std::exception_ptr first;
    if (!any_ || (!nests_ && HookScope::inside(this))) return first;
    const Call call(*this);
    if (call.hooks == nullptr) return first;
    for (const Entry& entry : *call.hooks) {
      try {
        (void)entry.kept->hook(told...);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    return first;
  }

 private:
  struct Kept {
    explicit Kept(Hook given) : hook(std::move(given)) {}
    const Hook hook;
    std::atomic<std::uint32_t> calls{
        0};  ///< of the list, that it is part of and that are under way
  };
  struct Entry {
    HookId id;
    std::shared_ptr<Kept> kept;
  };
  using Entries = std::vector<Entry>;
  /// The list is replaced whole when it changes, so that calling them takes no copy. A copy of a
  /// function may take host memory, and some are called when the host may have none.
  using Hooks = std::shared_ptr<const Entries>;

  template <class Change>
  void change(Change change_entries) CISTERN_REQUIRES(mutex_) {
    auto changed = hooks_ ? std::make_shared<Entries>(*hooks_) : std::make_shared<Entries>();
    change_entries(*changed);
    hooks_ = std::move(changed);
    any_ = !hooks_->empty();
  }
  struct Call {
    explicit Call(HookList& list) : of(list), scope(&list) {
      const MutexLock lock(of.mutex_);
      hooks = of.hooks_;
      if (hooks == nullptr) return;
      for (const Entry& entry : *hooks) ++entry.kept->calls;
    }
    ~Call() {
      if (hooks == nullptr) return;
      for (const Entry& entry : *hooks) {
        --entry.kept->calls;
        entry.kept->calls.notify_all();
      }
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    HookList& of;
    const HookScope scope;
    Hooks hooks;
  };

  const char* const verb_;
  const bool nests_;
  Mutex mutex_{LockRank::kHooks};
  Hooks hooks_ CISTERN_GUARDED_BY(mutex_);
  std::atomic<bool> any_{false};  ///< whether there are: a miss takes no lock to find none
};

}  // namespace cistern
