// The threads that have memory in hand: between where it lay and where it goes. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

#include "allocator/base/sections.hpp"
#include "allocator/base/thread_scope.hpp"
#include "allocator/engine/engine.hpp"

namespace cistern {

/// A thread that takes memory from where it lies, to use it or to give it back. While memory is in
/// hand, searches by other threads cannot see it. So a failed search is conclusive only if the
/// thread was alone. A scope that the same thread opens in a callback of the program is not another
/// thread's.
class InHand : public ThreadScope<InHand> {
 public:
  explicit InHand(Engine& engine) noexcept : engine_(engine), entry_(engine.in_hand.enter()) {}
  ~InHand() {
    engine_.in_hand.leave(entry_);
    if (InHand* const scope = around()) scope->inner_ += 1 + inner_;
  }

  /// Whether no other thread has been in an InHand scope of the engine's since this one began.
  bool alone() const noexcept {
    return around() != nullptr || engine_.in_hand.alone(entry_, inner_);
  }

  /// Waits until what other threads have in hand now has left their hands. False if one still has
  /// some after a second: it may run code of the program's that waits for this thread. A thread
  /// that has some itself does not wait.
  static bool waitForOthers(Engine& engine) noexcept {
    if (insideAny([&](const InHand& scope) { return &scope.engine_ == &engine; })) return true;
    return engine.in_hand.waitForOthers(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  }

 private:
  /// The next scope of the engine's that it lies in; null for none.
  InHand* around() const noexcept {
    InHand* scope = outer();
    while (scope != nullptr && &scope->engine_ != &engine_) scope = scope->outer();
    return scope;
  }

  Engine& engine_;
  const Sections::Entry entry_;
  std::uint64_t inner_ = 0;  ///< scopes that began and ended in it
};

}  // namespace cistern
