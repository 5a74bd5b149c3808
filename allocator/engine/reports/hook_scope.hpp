// While it lives, this thread is inside a hook of the program, which is not called again for what
// the hook itself asks for: it would never end.
#pragma once

namespace cistern {

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

}  // namespace cistern
