// The allocations of training and running a transformer, as PyTorch makes them: weights,
// activations that are kept for the backward pass, gradients, optimizer state, temporaries.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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

// The allocations of training a convolutional network on images. These are activations that shrink
// from stage to stage, the library's workspaces, and found boxes, whose number depends on the
// picture.

struct ConvnetShape {
  std::uint64_t stages, blocks;  ///< blocks in a stage; each stage halves height and width
  std::uint64_t channels;        ///< of the first stage; each next one has twice as many
  bool detects;                  ///< has a head over a random number of boxes

  static ConvnetShape drawn(Random& random);
};

class Convnet {
 public:
  Convnet(Program& program, Random& random, const ConvnetShape& shape);

  void trainStep(std::uint64_t images, std::uint64_t height, std::uint64_t width);

 private:
  struct Layer {
    std::uint64_t activation, weight;  ///< bytes
    Blocks kept;
  };

  std::vector<Layer> layersFor(std::uint64_t images, std::uint64_t height, std::uint64_t width);
  void forward(Layer& layer);
  void backward(Layer& layer);
  void detect(std::uint64_t images);
  std::uint64_t workspace(const Layer& layer);

  Program& program_;
  Random& random_;
  const ConvnetShape shape_;
  Blocks weights_, gradients_, momentum_;
};

// A network whose sizes are drawn once, so that every step of its training makes the same requests
// in the same order. Other networks draw while they run (above).

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
