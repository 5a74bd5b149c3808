#include "interop/programs/networks.hpp"

#include <algorithm>

#include "allocator/base/bytes.hpp"

namespace cistern::programs {
TransformerShape TransformerShape::drawn(Random& random) {
  TransformerShape shape{};
  shape.hidden = 128 * random.between(4, 24);
  shape.layers = random.between(6, 28);
  shape.heads = shape.hidden / random.pick({64, 128});
  const bool gated = random.chance(50);
  shape.ffn = gated ? shape.hidden * 11 / 4 / 64 * 64 : 4 * shape.hidden;
  shape.vocabulary = random.pick({8'192, 32'000, 50'257, 64'000, 100'352});
  shape.weight_bytes = random.chance(50) ? kFloat : kHalf;
  shape.experts = random.chance(15) ? random.pick({4, 8}) : 1;
  shape.recompute = random.chance(30);
  return shape;
}

Transformer::Transformer(Program& program, Random& random, const TransformerShape& shape,
                         int stream)
    : program_(program), random_(random), shape_(shape), stream_(stream) {
  parameters_.push_back(shape.vocabulary * shape.hidden);
  for (std::uint64_t i = 0; i < shape.layers; ++i) {
    parameters_.insert(parameters_.end(), {shape.hidden, 3 * shape.hidden * shape.hidden,
                                           shape.hidden * shape.hidden, shape.hidden});
    for (std::uint64_t e = 0; e < shape.experts; ++e) {
      parameters_.insert(parameters_.end(), 2, shape.hidden * shape.ffn);
    }
  }
  for (const std::uint64_t elements : parameters_) {
    weights_.push_back(take(elements * shape.weight_bytes));
  }
}

void Transformer::drop() {
  for (Blocks* blocks : {&weights_, &gradients_, &state_}) program_.drop(*blocks);
}

void Transformer::keepOrDrop(Block block, Blocks* kept) {
  if (kept != nullptr) {
    kept->push_back(block);
  } else {
    program_.drop(block);
  }
}

/// A gate sends each token to one expert, as uneven as gates are.
void Transformer::dealTokens(std::uint64_t tokens) {
  dealt_.assign(shape_.experts, 0);
  std::vector<std::uint64_t> weight(shape_.experts);
  std::uint64_t sum = 0;
  for (std::uint64_t& w : weight) sum += w = random_.between(10, 40);
  for (std::uint64_t e = 0; e < shape_.experts; ++e) dealt_[e] = tokens * weight[e] / sum + 1;
}

Block Transformer::expert(std::uint64_t tokens, Blocks* kept) {
  const std::uint64_t wide = tokens * shape_.ffn * kHalf;
  const Block up = take(wide);
  const Block activated = take(wide);
  keepOrDrop(up, kept);
  const Block down = take(tokens * shape_.hidden * kHalf);
  keepOrDrop(activated, kept);
  return down;
}

/// The output; the input stays.
Block Transformer::forwardLayer(Block, std::uint64_t tokens, std::uint64_t sequences,
                                Blocks* kept) {
  const std::uint64_t narrow = tokens * shape_.hidden * kHalf;
  const Block normed = take(narrow);
  const Block statistics = take(tokens * kFloat);
  if (shape_.weight_bytes == kFloat) keepOrDrop(take(3 * shape_.hidden * shape_.hidden * 2), kept);
  const Block qkv = take(3 * narrow);
  keepOrDrop(normed, kept);
  const Block attended = take(narrow);
  keepOrDrop(take(shape_.heads * tokens * kFloat), kept);
  scratch(16 * sequences);
  keepOrDrop(qkv, kept);
  const Block projected = take(narrow);
  keepOrDrop(attended, kept);
  const Block residual = take(narrow);
  program_.drop(projected);
  keepOrDrop(statistics, kept);
  const Block normed_again = take(narrow);
  if (shape_.experts == 1) {
    const Block down = expert(tokens, kept);
    keepOrDrop(normed_again, kept);
    const Block output = take(narrow);
    program_.drop(down);
    keepOrDrop(residual, kept);
    return output;
  }
  dealTokens(tokens);
  const Block output = take(narrow);
  for (const std::uint64_t dealt : dealt_) {
    keepOrDrop(take(dealt * kIndex), kept);
    const Block gathered = take(dealt * shape_.hidden * kHalf);
    const Block down = expert(dealt, kept);
    keepOrDrop(gathered, kept);
    program_.drop(down);
  }
  keepOrDrop(normed_again, kept);
  keepOrDrop(residual, kept);
  return output;
}

void Transformer::weightGradient(std::uint64_t elements) {
  gradients_.push_back(take(elements * shape_.weight_bytes));
}

/// The gradient of the layer's input; what was kept and the output's gradient are dropped.
Block Transformer::backwardLayer(Saved& saved, Block gradient, std::uint64_t tokens,
                                 std::uint64_t sequences) {
  if (shape_.recompute) {
    program_.drop(forwardLayer(saved.input, tokens, sequences, &saved.kept));
  }
  const std::uint64_t narrow = tokens * shape_.hidden * kHalf;
  for (std::uint64_t e = 0; e < shape_.experts; ++e) {
    const std::uint64_t wide = tokens / shape_.experts * shape_.ffn * kHalf;
    const Block d_activated = take(wide);
    weightGradient(shape_.hidden * shape_.ffn);
    const Block d_up = take(wide);
    program_.drop(d_activated);
    weightGradient(shape_.hidden * shape_.ffn);
    scratch(narrow / shape_.experts);
    program_.drop(d_up);
  }
  while (saved.kept.size() > 4) {
    program_.drop(saved.kept.back());
    saved.kept.pop_back();
  }
  const Block d_attended = take(narrow);
  weightGradient(shape_.hidden * shape_.hidden);
  const Block d_qkv = take(3 * narrow);
  scratch(shape_.heads * tokens * kFloat);
  program_.drop(d_attended);
  weightGradient(3 * shape_.hidden * shape_.hidden);
  const Block d_input = take(narrow);
  program_.drop(d_qkv);
  weightGradient(shape_.hidden);
  scratch(128 * shape_.hidden);
  weightGradient(shape_.hidden);
  program_.drop(saved.kept);
  program_.drop(gradient);
  program_.drop(saved.input);
  return d_input;
}

/// Drops the last layer's output; returns its gradient.
Block Transformer::loss(std::uint64_t tokens, Block last) {
  const std::uint64_t logits_bytes = tokens * shape_.vocabulary;
  const Block logits = take(logits_bytes * kHalf);
  const Block as_float = take(logits_bytes * kFloat);
  const Block log_softmax = take(logits_bytes * kFloat);
  program_.drop(as_float);
  scratch(kFloat);
  program_.pass(random_.between(20, 400));
  const Block d_float = take(logits_bytes * kFloat);
  program_.drop(log_softmax);
  const Block d_logits = take(logits_bytes * kHalf);
  program_.drop(d_float);
  program_.drop(logits);
  const Block gradient = take(tokens * shape_.hidden * kHalf);
  weightGradient(parameters_[0]);
  program_.drop(d_logits);
  program_.drop(last);
  return gradient;
}

/// State is made in the first step and stays; a step has temporaries for a few tensors at a time.
void Transformer::optimize() {
  if (state_.empty()) {
    for (const std::uint64_t elements : parameters_) {
      state_.push_back(take(elements * shape_.weight_bytes));
      state_.push_back(take(elements * shape_.weight_bytes));
    }
  }
  constexpr std::size_t kTogether = 24;
  Blocks temporaries;
  for (std::size_t i = 0; i < parameters_.size(); i += kTogether) {
    for (std::size_t k = i; k < std::min(i + kTogether, parameters_.size()); ++k) {
      temporaries.push_back(take(parameters_[k] * shape_.weight_bytes));
    }
    program_.drop(temporaries);
  }
  program_.drop(gradients_);
}

void Transformer::trainStep(std::uint64_t tokens, std::uint64_t sequences) {
  const Block ids = take(tokens * kIndex);
  Block x = take(tokens * shape_.hidden * kHalf);
  std::vector<Saved> saved(shape_.layers);
  for (Saved& layer : saved) {
    layer.input = x;
    x = forwardLayer(x, tokens, sequences, shape_.recompute ? nullptr : &layer.kept);
  }
  Block gradient = loss(tokens, x);
  for (std::size_t i = saved.size(); i-- > 0;) {
    gradient = backwardLayer(saved[i], gradient, tokens, sequences);
  }
  program_.drop(gradient);
  program_.drop(ids);
  optimize();
}

void Transformer::inferStep(std::uint64_t tokens, std::uint64_t sequences) {
  const Block ids = take(tokens * kIndex);
  Block x = take(tokens * shape_.hidden * kHalf);
  for (std::uint64_t i = 0; i < shape_.layers; ++i) {
    const Block output = forwardLayer(x, tokens, sequences, nullptr);
    program_.drop(x);
    x = output;
  }
  const Block logits = take(sequences * shape_.vocabulary * kHalf);
  program_.drop(x);
  scratch(sequences * shape_.vocabulary * kFloat);
  program_.drop(logits);
  program_.drop(ids);
}

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
