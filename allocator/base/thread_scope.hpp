// Scopes that a thread is in, one inside the other: of each kind of scope a list, the innermost
// first.
#pragma once

namespace cistern {

/// The base of a kind of scope, which names itself as Kind. One thread makes and destroys it, like
/// a local variable, and only that thread sees it.
template <class Kind>
class ThreadScope {
 public:
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 protected:
  ThreadScope() noexcept : outer_(innermost_) { innermost_ = static_cast<Kind*>(this); }
  ~ThreadScope() { innermost_ = outer_; }

  /// The one around it; null for none.
  Kind* outer() const noexcept { return outer_; }
  /// The innermost that the calling thread is in; null for none.
  static Kind* innermost() noexcept { return innermost_; }
  /// Whether the thread is in one for which `is` returns true.
  template <class Is>
  static bool insideAny(Is is) noexcept {
    const Kind* scope = innermost_;
    while (scope != nullptr && !is(*scope)) scope = scope->outer_;
    return scope != nullptr;
  }

 private:
  Kind* const outer_;
  inline static constinit thread_local Kind* innermost_ = nullptr;
};

}  // namespace cistern
