// The allocations of training a convolutional network on images. These are activations that shrink
// from stage to stage, the library's workspaces, and found boxes, whose number depends on the
// picture.
#pragma once

#include <cstdint>

#include "interop/programs/program.hpp"

namespace cistern::programs {

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

}  // namespace cistern::programs
