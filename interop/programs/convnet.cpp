#include "interop/programs/convnet.hpp"

#include <algorithm>

#include "allocator/base/bytes.hpp"

namespace cistern::programs {
namespace {

constexpr std::uint64_t kMostWorkspace = 512 * kMiB;

}  // namespace

ConvnetShape ConvnetShape::drawn(Random& random) {
  ConvnetShape shape{};
  shape.stages = random.between(3, 5);
  shape.blocks = random.between(3, 12);
  shape.channels = 16 * random.between(2, 8);
  shape.detects = random.chance(50);
  return shape;
}

Convnet::Convnet(Program& program, Random& random, const ConvnetShape& shape)
    : program_(program), random_(random), shape_(shape) {
  for (const Layer& layer : layersFor(1, 32, 32)) weights_.push_back(program_.take(layer.weight));
}

std::vector<Convnet::Layer> Convnet::layersFor(std::uint64_t images, std::uint64_t height,
                                               std::uint64_t width) {
  std::vector<Layer> layers;
  for (std::uint64_t stage = 0; stage < shape_.stages; ++stage) {
    const std::uint64_t channels = shape_.channels << stage;
    const std::uint64_t pixels = std::max<std::uint64_t>((height >> stage) * (width >> stage), 1);
    for (std::uint64_t i = 0; i < shape_.blocks; ++i) {
      layers.push_back({images * channels * pixels * kFloat, 9 * channels * channels * kFloat, {}});
    }
  }
  return layers;
}

/// The library's choice of an algorithm goes by size, and not smoothly.
std::uint64_t Convnet::workspace(const Layer& layer) {
  const std::uint64_t wanted = layer.activation * (layer.activation / kMiB % 5) / 2;
  return std::clamp<std::uint64_t>(wanted, 512, kMostWorkspace);
}

void Convnet::forward(Layer& layer) {
  layer.kept.push_back(program_.take(layer.activation));
  program_.scratch(workspace(layer));
  layer.kept.push_back(program_.take(layer.activation));
  layer.kept.push_back(program_.take(shape_.channels * 8 * kFloat));
  if (random_.chance(30)) program_.scratch(layer.activation / 4);
}

void Convnet::backward(Layer& layer) {
  const Block gradient = program_.take(layer.activation);
  program_.scratch(workspace(layer));
  gradients_.push_back(program_.take(layer.weight));
  program_.scratch(layer.activation);
  program_.drop(layer.kept);
  program_.drop(gradient);
}

/// Proposals are sorted, cut out and put back together, each picture's own number of them.
void Convnet::detect(std::uint64_t images) {
  Blocks features;
  for (std::uint64_t i = 0; i < images; ++i) {
    const std::uint64_t boxes = random_.between(20, 1'000);
    program_.scratch(boxes * boxes / 8 + 512);
    features.push_back(program_.take(boxes * 256 * 49 * kFloat));
    for (int k = 0; k < 6; ++k) program_.scratch(boxes * random_.between(1, 9) * kFloat);
    if (random_.chance(50)) features.push_back(program_.take(boxes * 28 * 28 * kFloat));
  }
  program_.pass(random_.between(100, 2'000));  // how many there are, the host has to know
  program_.drop(features);
}

void Convnet::trainStep(std::uint64_t images, std::uint64_t height, std::uint64_t width) {
  const Block input = program_.take(images * 3 * height * width * kFloat);
  std::vector<Layer> layers = layersFor(images, height, width);
  for (Layer& layer : layers) forward(layer);
  if (shape_.detects) detect(images);
  for (std::size_t i = layers.size(); i-- > 0;) backward(layers[i]);
  program_.drop(input);
  if (momentum_.empty()) {
    for (const Layer& layer : layers) momentum_.push_back(program_.take(layer.weight));
  }
  program_.drop(gradients_);
}

}  // namespace cistern::programs
