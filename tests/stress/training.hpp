// Training that repeats one step exactly, for storms: under it an allocator may come to rest, which
// it never does under random operations.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace cistern::stress {

/// Of the thread that trains.
struct Dice {
  std::function<std::uint64_t(std::uint64_t)> below;
  std::function<std::uint64_t()> size;  ///< bytes of a tensor
};

struct Move {
  enum class Kind : std::uint8_t {
    kAllocate,
    kFree,        ///< the oldest block of the tensor
    kFreeBefore,  ///< the block of the step before: a variable of the loop is assigned anew
  };
  Kind kind;
  std::size_t tensor;
  std::uint64_t bytes = 0;  ///< kAllocate
};

/// Each tensor is allocated once a step. The backward pass frees activations in reverse order, but
/// those that a variable holds outlive their successors' allocation.
class TrainingStep {
 public:
  explicit TrainingStep(const Dice& dice);

  std::size_t tensors() const { return tensors_; }
  const std::vector<Move>& moves() const { return moves_; }
  /// The same with some frees 1 to 4 moves later.
  std::vector<Move> jittered(const Dice& dice) const;

 private:
  std::size_t allocate(std::uint64_t bytes);
  void free(std::size_t tensor, Move::Kind kind) { moves_.push_back({kind, tensor}); }

  std::vector<Move> moves_;
  std::size_t tensors_ = 0;
};

/// A few steps, some of them with jitter. `take(bytes)` gives a block, or null if there is no
/// memory for it; the training is over then. `give(block)` gets each block.
template <class Take, class Give>
void train(const Dice& dice, Take take, Give give) {
  const TrainingStep step(dice);
  std::vector<std::vector<decltype(take(0))>> blocks(step.tensors());
  bool served = true;
  const auto play = [&](const Move& move) {
    auto& held = blocks[move.tensor];
    if (move.kind == Move::Kind::kAllocate) {
      auto block = take(move.bytes);
      served = block != nullptr;
      if (served) held.push_back(std::move(block));
    } else if (held.size() > (move.kind == Move::Kind::kFreeBefore ? 1u : 0u)) {
      give(std::move(held.front()));
      held.erase(held.begin());
    }
  };
  for (std::uint64_t steps = 2 + dice.below(6); served && steps > 0; --steps) {
    const auto moves = dice.below(3) == 0 ? step.jittered(dice) : step.moves();
    for (std::size_t i = 0; served && i < moves.size(); ++i) play(moves[i]);
  }
  for (auto& held : blocks) {
    for (auto& block : held) give(std::move(block));
  }
}

}  // namespace cistern::stress
