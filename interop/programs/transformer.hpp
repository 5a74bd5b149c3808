// The allocations of training and running a transformer, as PyTorch makes them: weights,
// activations that are kept for the backward pass, gradients, optimizer state, temporaries.
// Convolutions: convnet.hpp.
#pragma once

#include <cstdint>

#include "interop/programs/program.hpp"

namespace cistern::programs {

struct TransformerShape {
  std::uint64_t layers, hidden, ffn, heads, vocabulary;
  std::uint64_t weight_bytes;  ///< 4: kept in float, cast for each step; 2: half throughout
  std::uint64_t experts;       ///< 1: none; else each layer's tokens are dealt over so many
  bool recompute;              ///< keeps each layer's input only

  static TransformerShape drawn(Random& random);
};

class Transformer {
 public:
  Transformer(Program& program, Random& random, const TransformerShape& shape, int stream = 0);

  const TransformerShape& shape() const { return shape_; }
  /// Forward, backward, optimizer, gradients dropped. `tokens` in all, in `sequences`.
  void trainStep(std::uint64_t tokens, std::uint64_t sequences);
  /// Forward only, nothing kept.
  void inferStep(std::uint64_t tokens, std::uint64_t sequences);
  /// Everything that it holds.
  void drop();

 private:
  struct Saved {
    Block input = 0;
    Blocks kept;
  };

  void dealTokens(std::uint64_t tokens);
  Block forwardLayer(Block input, std::uint64_t tokens, std::uint64_t sequences, Blocks* kept);
  Block expert(std::uint64_t tokens, Blocks* kept);
  Block backwardLayer(Saved& saved, Block gradient, std::uint64_t tokens, std::uint64_t sequences);
  Block loss(std::uint64_t tokens, Block last);
  void weightGradient(std::uint64_t elements);
  void optimize();
  void keepOrDrop(Block block, Blocks* kept);
  Block take(std::uint64_t bytes) { return program_.take(bytes, stream_); }
  void scratch(std::uint64_t bytes) { program_.scratch(bytes, stream_); }

  Program& program_;
  Random& random_;
  const TransformerShape shape_;
  const int stream_;
  std::vector<std::uint64_t> parameters_;  ///< elements of each
  std::vector<std::uint64_t> dealt_;       ///< tokens of each expert, in this layer
  Blocks weights_, gradients_, state_;
};

}  // namespace cistern::programs
