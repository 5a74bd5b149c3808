// Training that makes the same requests in every step, as a program does whose shapes never change.
#include <algorithm>
#include <optional>

#include "allocator/base/bytes.hpp"
#include "interop/programs/kinds.hpp"
#include "interop/programs/layered.hpp"

namespace cistern::programs {
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
