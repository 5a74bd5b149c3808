#include "tests/stress/training.hpp"

#include <algorithm>

namespace cistern::stress {

TrainingStep::TrainingStep(const Dice& dice) {
  std::vector<std::size_t> saved, held;
  for (std::uint64_t layers = 3 + dice.below(6); layers > 0; --layers) {
    (dice.below(6) == 0 ? held : saved).push_back(allocate(dice.size()));
    if (dice.below(2) == 0) free(allocate(dice.size()), Move::Kind::kFree);  // a workspace
  }
  held.push_back(allocate(sizeof(float)));  // the loss
  for (const std::size_t tensor : held) free(tensor, Move::Kind::kFreeBefore);
  for (; !saved.empty(); saved.pop_back()) {
    const std::size_t gradient = allocate(dice.size());
    free(saved.back(), Move::Kind::kFree);
    free(gradient, Move::Kind::kFree);
  }
}

std::size_t TrainingStep::allocate(std::uint64_t bytes) {
  moves_.push_back({Move::Kind::kAllocate, tensors_, bytes});
  return tensors_++;
}

// From the end on, so that no free is moved twice.
std::vector<Move> TrainingStep::jittered(const Dice& dice) const {
  std::vector<Move> moves = moves_;
  for (std::size_t i = moves.size(); i-- > 0;) {
    if (moves[i].kind == Move::Kind::kAllocate || dice.below(4) != 0) continue;
    const std::size_t last = std::min<std::size_t>(i + 1 + dice.below(4), moves.size() - 1);
    std::rotate(moves.begin() + std::ptrdiff_t(i), moves.begin() + std::ptrdiff_t(i) + 1,
                moves.begin() + std::ptrdiff_t(last) + 1);
  }
  return moves;
}

}  // namespace cistern::stress
