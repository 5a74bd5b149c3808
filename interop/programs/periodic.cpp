#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "interop/programs/kinds.hpp"
#include "interop/programs/networks.hpp"

namespace cistern::programs {
namespace {

constexpr std::uint64_t kLargestWorkspace = 128 * kMiB;

Layer convolution(Random& random, std::uint64_t channels, std::uint64_t edge) {
  const std::uint64_t activation = channels * edge * edge * kFloat;
  Layer layer{};
  layer.weight = 9 * channels * channels * kFloat;
  layer.bias = channels * kFloat;
  layer.statistics = 2 * channels * kFloat;
  layer.workspace = random.logBetween(512, kLargestWorkspace);
  layer.has_temporary = random.chance(30);
  layer.kept.assign(random.between(1, 3), activation);
  return layer;
}

/// Each stage has half the edge of the one before, and twice the channels.
std::vector<Layer> drawnConvolutions(Random& random, std::uint64_t count) {
  const std::uint64_t stages = random.between(2, 5), per_stage = (count + stages - 1) / stages;
  const std::uint64_t channels = 16 * random.between(1, 4), edge = 32 * random.between(2, 8);
  std::vector<Layer> layers;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t stage = i / per_stage;
    layers.push_back(
        convolution(random, channels << stage, std::max<std::uint64_t>(edge >> stage, 1)));
  }
  if (random.chance(50)) std::reverse(layers.begin(), layers.end());  // a generator of pictures
  return layers;
}

/// Layers of one shape, but for a workspace: attention, and two linear functions behind it.
std::vector<Layer> drawnAttention(Random& random, std::uint64_t count) {
  const std::uint64_t hidden = 128 * random.between(2, 12), tokens = 64 * random.between(2, 16);
  const std::uint64_t narrow = tokens * hidden * kHalf;
  Layer layer{};
  layer.weight = 12 * hidden * hidden * kHalf;
  layer.bias = 13 * hidden * kHalf;
  layer.statistics = 2 * tokens * kFloat;
  layer.has_temporary = random.chance(50);
  layer.kept = {narrow, 3 * narrow, narrow, 4 * narrow, narrow};
  std::vector<Layer> layers(count, layer);
  for (Layer& one : layers) one.workspace = random.logBetween(512, kMiB);
  return layers;
}

std::uint64_t largestActivation(const Layer& layer) {
  return *std::max_element(layer.kept.begin(), layer.kept.end());
}

/// The layers' numbers in random order, or in half of all networks with the largest first.
std::vector<std::size_t> inOrderOfHolding(Random& random, const std::vector<Layer>& layers) {
  std::vector<std::size_t> order(layers.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.between(0, i)]);
  if (random.chance(50)) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
      return largestActivation(layers[one]) > largestActivation(layers[other]);
    });
  }
  return order;
}

/// Lets a variable hold 3 to 5 % of a step's tensors, with the loss and the batch.
void holdSome(Random& random, std::vector<Layer>& layers) {
  constexpr std::uint64_t kOthers = 8;  // statistics, workspaces, gradients, temporaries
  std::uint64_t tensors = 0;
  for (const Layer& layer : layers) tensors += layer.kept.size() + kOthers;
  std::uint64_t left = tensors * random.between(30, 50) / 1'000;
  left -= std::min<std::uint64_t>(left, 2);
  for (const std::size_t number : inOrderOfHolding(random, layers)) {
    Layer& layer = layers[number];
    layer.held = std::min<std::uint64_t>(left, random.between(1, layer.kept.size()));
    left -= layer.held;
  }
}

}  // namespace

LayeredShape LayeredShape::drawn(Random& random, std::uint64_t layers) {
  LayeredShape shape{};
  shape.layers =
      random.chance(50) ? drawnConvolutions(random, layers) : drawnAttention(random, layers);
  holdSome(random, shape.layers);
  shape.gradients = Gradients(random.between(0, 2));
  shape.has_temporaries = random.chance(50);
  return shape;
}

std::uint64_t LayeredShape::samplesFor(std::uint64_t bytes) const {
  std::uint64_t largest = 1;
  for (const Layer& layer : layers) largest = std::max(largest, largestActivation(layer));
  return std::max<std::uint64_t>(bytes / largest, 1);
}

LayeredNetwork::LayeredNetwork(Program& program, LayeredShape shape)
    : program_(program), shape_(std::move(shape)) {
  for (const Layer& layer : shape_.layers)
    parameters_.insert(parameters_.end(), {layer.weight, layer.bias});
  for (const std::uint64_t bytes : parameters_) weights_.push_back(program_.take(bytes));
  gradients_.resize(parameters_.size());
}

void LayeredNetwork::forward(const Layer& layer, Pass& pass, Blocks& held) {
  Blocks& kept = pass.kept.emplace_back();
  kept.push_back(program_.take(layer.statistics));
  for (std::size_t i = 0; i < layer.kept.size(); ++i) {
    const bool is_held = layer.kept.size() - i <= layer.held;
    (is_held ? held : kept).push_back(program_.take(layer.kept[i] * pass.samples));
    if (i == 0) program_.scratch(layer.workspace);
  }
  if (layer.has_temporary) program_.scratch(layer.output() * pass.samples);
}

LayeredNetwork::Pass LayeredNetwork::forward(std::uint64_t samples, Blocks& variable) {
  Pass pass{samples, {}};
  Blocks held;
  for (const Layer& layer : shape_.layers) forward(layer, pass, held);
  program_.scratch(shape_.layers.back().output() * samples);
  held.push_back(program_.take(kFloat));
  program_.assign(variable, std::move(held));
  return pass;
}

/// The first gradient of a parameter stays; each later one is added to it.
void LayeredNetwork::addGradient(std::size_t parameter) {
  const Block gradient = program_.take(parameters_[parameter]);
  if (gradients_[parameter]) {
    program_.drop(gradient);
  } else {
    gradients_[parameter] = gradient;
  }
}

void LayeredNetwork::backward(Pass& pass) {
  Block gradient = program_.take(shape_.layers.back().output() * pass.samples);
  for (std::size_t i = shape_.layers.size(); i-- > 0;) {
    const Layer& layer = shape_.layers[i];
    const Layer& before = shape_.layers[i == 0 ? 0 : i - 1];
    const Block next = program_.take(before.output() * pass.samples);
    program_.scratch(layer.workspace);
    addGradient(2 * i);
    addGradient(2 * i + 1);
    std::reverse(pass.kept[i].begin(), pass.kept[i].end());
    program_.drop(pass.kept[i]);
    program_.drop(std::exchange(gradient, next));
  }
  program_.drop(gradient);
}

void LayeredNetwork::infer(std::uint64_t samples, Blocks& variable) {
  Blocks before;
  for (const Layer& layer : shape_.layers) {
    Blocks made;
    for (const std::uint64_t bytes : layer.kept) made.push_back(program_.take(bytes * samples));
    program_.scratch(layer.workspace);
    program_.drop(before);
    before = {made.back()};
    made.pop_back();
    program_.drop(made);
  }
  program_.assign(variable, std::move(before));
}

void LayeredNetwork::freeGradients() {
  for (std::optional<Block>& gradient : gradients_) {
    if (gradient) program_.drop(*gradient);
    gradient.reset();
  }
}

/// The state is made in the first step and stays.
void LayeredNetwork::optimize() {
  constexpr std::size_t kTogether = 24;
  if (state_.empty()) {
    for (const std::uint64_t bytes : parameters_)
      std::generate_n(std::back_inserter(state_), 2, [&] { return program_.take(bytes); });
  }
  if (!shape_.has_temporaries) return;
  Blocks temporaries;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    temporaries.push_back(program_.take(parameters_[i]));
    if (temporaries.size() == kTogether) program_.drop(temporaries);
  }
  program_.drop(temporaries);
}

void LayeredNetwork::beginStep() {
  if (shape_.gradients != Gradients::kNeverFreed) freeGradients();
}

void LayeredNetwork::endStep() {
  optimize();
  if (shape_.gradients == Gradients::kFreedAfterStep) freeGradients();
}

// Training that makes the same requests in every step, as a program does whose shapes never change.

namespace {

struct Features {
  bool adversarial;              ///< a discriminator's step and a generator's, in turn
  std::uint64_t micro_batches;   ///< whose gradients are added up before the optimizer's step
  std::uint64_t evaluate_every;  ///< so many steps; 0: never
  std::uint64_t step_events;     ///< about so many

  static Features drawn(Random& random) {
    Features features{};
    features.adversarial = random.chance(40);
    features.micro_batches = random.chance(40) ? random.between(2, 4) : 1;
    features.evaluate_every = random.chance(40) ? random.between(5, 20) : 0;
    features.step_events = random.logBetween(150, 1'000);
    return features;
  }

  /// For each network. The factors are the events of one layer.
  std::uint64_t layers() const {
    const std::uint64_t pass = adversarial ? 70 : 17, optimizer = adversarial ? 8 : 4;
    return std::max<std::uint64_t>(step_events / (pass * micro_batches + optimizer), 3);
  }
};

std::uint64_t drawnSamples(Random& random, const LayeredNetwork& network) {
  return network.shape().samplesFor(random.logBetween(16 * kMiB, 256 * kMiB));
}

/// The loop of a program, with its variables: each holds tensors until it is assigned anew.
class Training {
 public:
  Training(Program& program, Random& random)
      : program_(program),
        features_(Features::drawn(random)),
        model_(program, LayeredShape::drawn(random, features_.layers())),
        samples_(drawnSamples(random, model_)),
        evaluated_samples_(std::max<std::uint64_t>(samples_ * random.pick({1, 3, 4, 6}) / 2, 1)),
        evaluated_batches_(random.between(1, 4)) {
    if (!features_.adversarial) return;
    generator_.emplace(program, LayeredShape::drawn(random, features_.layers()));
    generated_samples_ = drawnSamples(random, *generator_);
  }

  void step(std::uint64_t number) {
    trainModel();
    if (generator_) trainGenerator();
    const std::uint64_t every = features_.evaluate_every;
    if (every != 0 && number % every == every - 1) evaluate();
  }

 private:
  void load(std::uint64_t samples, Blocks& batch) {
    const std::uint64_t sample = model_.shape().layers.front().output() / 4 + 1;
    program_.assign(batch, {program_.take(sample * samples), program_.take(kIndex * samples)});
  }

  /// The discriminator, if there is a generator: it sees a batch and what the generator made.
  void trainModel() {
    model_.beginStep();
    for (std::uint64_t i = 0; i < features_.micro_batches; ++i) {
      load(samples_, batch_);
      if (generator_) generator_->infer(generated_samples_, generated_);
      LayeredNetwork::Pass pass = model_.forward(samples_, loss_);
      if (generator_) {
        LayeredNetwork::Pass of_generated = model_.forward(samples_, loss_of_generated_);
        model_.backward(of_generated);
      }
      model_.backward(pass);
    }
    model_.endStep();
  }

  void trainGenerator() {
    generator_->beginStep();
    for (std::uint64_t i = 0; i < features_.micro_batches; ++i) {
      LayeredNetwork::Pass made = generator_->forward(generated_samples_, generator_output_);
      LayeredNetwork::Pass judged = model_.forward(samples_, generator_loss_);
      model_.backward(judged);
      generator_->backward(made);
    }
    generator_->endStep();
  }

  void evaluate() {
    for (std::uint64_t i = 0; i < evaluated_batches_; ++i) {
      load(evaluated_samples_, evaluated_batch_);
      model_.infer(evaluated_samples_, prediction_);
    }
  }

  Program& program_;
  const Features features_;
  LayeredNetwork model_;
  std::optional<LayeredNetwork> generator_;
  const std::uint64_t samples_, evaluated_samples_, evaluated_batches_;
  std::uint64_t generated_samples_ = 0;
  Blocks batch_, loss_, loss_of_generated_, generated_, generator_output_, generator_loss_;
  Blocks evaluated_batch_, prediction_;
};

}  // namespace

void periodic(Program& program, Random& random, std::uint64_t steps) {
  Training training(program, random);
  for (std::uint64_t i = 0; i < steps; ++i) {
    training.step(i);
    program.pass(random.between(500, 5'000));
  }
}

}  // namespace cistern::programs
