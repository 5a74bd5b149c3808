// A network whose sizes are drawn once, so that every step of its training makes the same requests
// in the same order. Other networks draw while they run: transformer.hpp, convnet.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "interop/programs/program.hpp"

namespace cistern::programs {

struct Layer {
  std::uint64_t weight, bias;       ///< bytes
  std::uint64_t statistics;         ///< bytes, for any number of samples
  std::uint64_t workspace;          ///< bytes of the library's scratch memory
  bool has_temporary;               ///< forward has a second tensor of the output's size
  std::vector<std::uint64_t> kept;  ///< bytes a sample of each activation; the last is the output
  std::uint64_t held = 0;           ///< so many of the last activations belong to a variable

  std::uint64_t output() const { return kept.back(); }
};

/// When the gradients of a step are freed.
enum class Gradients : std::uint8_t { kFreedAfterStep, kFreedBeforeStep, kNeverFreed };

struct LayeredShape {
  std::vector<Layer> layers;
  Gradients gradients;
  bool has_temporaries;  ///< the optimizer takes memory for a few tensors at a time

  /// A variable of the loop holds 3 to 5 % of a step's tensors.
  static LayeredShape drawn(Random& random, std::uint64_t layers);
  /// So many that the largest activation has `bytes`, and at least one.
  std::uint64_t samplesFor(std::uint64_t bytes) const;
};

class LayeredNetwork {
 public:
  /// The activations of one forward pass, by layer, until its backward pass.
  struct Pass {
    std::uint64_t samples;
    std::vector<Blocks> kept;
  };

  LayeredNetwork(Program& program, LayeredShape shape);

  const LayeredShape& shape() const { return shape_; }
  /// `variable` gets the loss, and the activations that outlive the backward pass.
  Pass forward(std::uint64_t samples, Blocks& variable);
  void backward(Pass& pass);
  /// Forward without a backward pass; `variable` gets the output.
  void infer(std::uint64_t samples, Blocks& variable);
  void beginStep();
  void endStep();

 private:
  void forward(const Layer& layer, Pass& pass, Blocks& held);
  void addGradient(std::size_t parameter);
  void freeGradients();
  void optimize();

  Program& program_;
  const LayeredShape shape_;
  std::vector<std::uint64_t> parameters_;        ///< bytes of each
  std::vector<std::optional<Block>> gradients_;  ///< by parameter
  Blocks weights_, state_;
};

}  // namespace cistern::programs
