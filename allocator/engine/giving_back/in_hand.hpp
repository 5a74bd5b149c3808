// The threads that have memory in hand: between where it lay and where it goes. Thread-safe.
#pragma once

#include <cstdint>

#include "allocator/base/thread_scope.hpp"
#include "allocator/engine/engine.hpp"

namespace cistern {

/// A thread that takes memory from where it lies, to use it or to give it back. While memory is in
/// hand, searches by other threads cannot see it. So a failed search is conclusive only if the
/// thread was alone. A scope that the same thread opens in a callback of the program is not another
/// thread's.
class InHand : public ThreadScope<InHand> {
 public:
  explicit InHand(Engine& engine) noexcept
      : engine_(engine), seen_(engine.in_hand.fetch_add(kOne) + kOne) {}
  ~InHand() {
    engine_.in_hand.fetch_sub(kNow);
    if (nested()) outer()->seen_ += kBegun;
  }

  /// Whether no other thread has been in an InHand scope of the engine's since this one began.
  bool alone() const noexcept {
    return nested() || (seen_ % kBegun == kNow && engine_.in_hand.load() == seen_);
  }

 private:
  // Engine::in_hand: the low bits count the scopes that are open now. The bits above count all that
  // have ever begun.
  static constexpr std::uint64_t kNow = 1, kBegun = std::uint64_t{1} << 20, kOne = kBegun + kNow;

  bool nested() const noexcept { return outer() != nullptr && &outer()->engine_ == &engine_; }

  Engine& engine_;
  std::uint64_t seen_;
};

}  // namespace cistern
