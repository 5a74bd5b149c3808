// Threads that take memory from where it lies, to use it or to give it back. What one of them has
// in hand meanwhile no other finds: so a thread that has found none knows that there is none only
// if it was alone.
#pragma once

#include <cstdint>

#include "allocator/base/thread_scope.hpp"
#include "allocator/engine/engine.hpp"

namespace cistern {

/// A thread while it does so. What it does in a callback of the program's, in such a scope again,
/// is no other's.
class InHand : public ThreadScope<InHand> {
 public:
  explicit InHand(Engine& engine) noexcept
      : engine_(engine), seen_(engine.in_hand.fetch_add(kOne) + kOne) {}
  ~InHand() {
    engine_.in_hand.fetch_sub(kNow);
    if (nested()) outer()->seen_ += kBegun;
  }

  /// Whether no other thread has been in such a scope of the engine's since this one began.
  bool alone() const noexcept {
    return nested() || (seen_ % kBegun == kNow && engine_.in_hand.load() == seen_);
  }

 private:
  // Engine::in_hand: how many are in a scope now, and above how many have ever begun one.
  static constexpr std::uint64_t kNow = 1, kBegun = std::uint64_t{1} << 20, kOne = kBegun + kNow;

  bool nested() const noexcept { return outer() != nullptr && &outer()->engine_ == &engine_; }

  Engine& engine_;
  std::uint64_t seen_;
};

}  // namespace cistern
