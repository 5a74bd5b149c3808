// Programs on many streams.
#include <algorithm>

#include "allocator/base/bytes.hpp"
#include "interop/programs/kinds.hpp"

namespace cistern::programs {
namespace {

/// Microbatches travel through the stages and back. Each stage works on a stream of its own. It
/// hands on memory of its own stream, and drops that after the next stage has used it.
class Pipeline {
 public:
  Pipeline(Program& program, Random& random) : program_(program), random_(random) {
    stages_ = random.between(2, 8);
    layers_ = random.between(1, 6);
    width_ = 2 * 128 * random.between(4, 40);
    microbatches_ = random.between(2, 12);
    most_tokens_ = random.logBetween(1'000, 20'000);
    prefetches_ = random.chance(40);
    trains_ = random.chance(50);
    if (!trains_) most_tokens_ = random.logBetween(10'000, 200'000);
    for (int stage = 0; stage < int(stages_); ++stage) {
      for (std::uint64_t i = 0; i < layers_; ++i) {
        weights_.push_back(program.take(6 * width_ * width_, stage));
      }
    }
  }

  void step() {
    if (trains_) {
      train();
    } else {
      infer();
    }
    program_.pass(random_.between(2'000, 100'000));
  }

 private:
  struct Micro {
    std::uint64_t tokens = 0;
    Block handed = 0;          ///< the last stage's output, or gradient
    std::vector<Blocks> kept;  ///< by stage
  };

  /// All forward, then all backward, in the order of a schedule that keeps every stage busy.
  void train() {
    std::vector<Micro> micros(microbatches_);
    for (Micro& micro : micros) micro.tokens = random_.between(most_tokens_ / 20, most_tokens_);
    for (std::uint64_t tick = 0; tick < stages_ + microbatches_ - 1; ++tick) {
      forEachAt(tick,
                [&](std::uint64_t stage, std::uint64_t m) { forward(micros[m], int(stage)); });
    }
    for (std::uint64_t tick = 0; tick < stages_ + microbatches_ - 1; ++tick) {
      forEachAt(tick, [&](std::uint64_t stage, std::uint64_t m) {
        backward(micros[m], int(stages_ - 1 - stage));
      });
    }
  }

  /// Nothing is kept: what a stage needs goes when it has handed on, and few microbatches are long.
  void infer() {
    std::vector<Micro> micros(microbatches_);
    for (Micro& micro : micros) micro.tokens = random_.logBetween(most_tokens_ / 50, most_tokens_);
    for (std::uint64_t tick = 0; tick < stages_ + microbatches_ - 1; ++tick) {
      forEachAt(tick, [&](std::uint64_t stage, std::uint64_t m) { handOn(micros[m], int(stage)); });
    }
  }

  /// The host is as far ahead of the GPU as it ever gets, and goes on as fast as that works.
  void compute(std::uint64_t narrow) {
    program_.pass(narrow * layers_ / 100'000 * random_.between(50, 150) / 100);
  }

  template <class Work>
  void forEachAt(std::uint64_t tick, Work work) {
    for (std::uint64_t stage = 0; stage < stages_; ++stage) {
      if (tick >= stage && tick - stage < microbatches_) work(stage, tick - stage);
    }
  }

  void forward(Micro& micro, int stage) {
    const std::uint64_t narrow = micro.tokens * width_;
    const bool first = stage == 0;
    Blocks kept;
    Block weight = 0;
    const int side = int(stages_);
    if (prefetches_) weight = program_.take(6 * width_ * width_, side);
    Block x = program_.take(narrow, stage);
    for (std::uint64_t i = 0; i < layers_; ++i) {
      kept.push_back(x);
      kept.push_back(program_.take(3 * narrow, stage));
      program_.scratch(random_.logBetween(512, narrow), stage);
      x = program_.take(narrow, stage);
    }
    if (prefetches_) program_.drop(weight);
    if (!first) program_.drop(micro.handed);
    micro.handed = x;
    micro.kept.push_back(std::move(kept));
    compute(narrow);
  }

  void handOn(Micro& micro, int stage) {
    const std::uint64_t narrow = micro.tokens * width_;
    Block x = program_.take(narrow, stage);
    for (std::uint64_t i = 0; i < layers_; ++i) {
      const Block wide = program_.take(4 * narrow, stage);
      program_.scratch(random_.logBetween(512, narrow), stage);
      const Block next = program_.take(narrow, stage);
      program_.drop(wide);
      program_.drop(x);
      x = next;
    }
    if (stage > 0) program_.drop(micro.handed);
    micro.handed = x;
    if (stage + 1 == int(stages_)) program_.drop(x);
    compute(narrow);
  }

  void backward(Micro& micro, int stage) {
    const std::uint64_t narrow = micro.tokens * width_;
    Block gradient = program_.take(narrow, stage);
    Blocks kept = std::move(micro.kept.back());
    micro.kept.pop_back();
    for (std::uint64_t i = layers_; i-- > 0;) {
      program_.scratch(3 * narrow, stage);
      const Block next = program_.take(narrow, stage);
      program_.drop(gradient);
      gradient = next;
      program_.drop(kept[2 * i + 1]);
      program_.drop(kept[2 * i]);
    }
    program_.drop(micro.handed);
    micro.handed = gradient;
    if (stage == 0) program_.drop(gradient);
    compute(narrow);
  }

  Program& program_;
  Random& random_;
  std::uint64_t stages_ = 0, layers_ = 0, width_ = 0, microbatches_ = 0, most_tokens_ = 0;
  bool trains_ = false;
  bool prefetches_ = false;  ///< weights are gathered on a stream beside the stages'
  Blocks weights_;
};

}  // namespace

void streams(Program& program, Random& random, std::uint64_t events) {
  const std::uint64_t until = program.events() + events;
  Pipeline pipeline(program, random);
  for (int i = 0; i < 4 || program.events() < until; ++i) pipeline.step();
}

}  // namespace cistern::programs
