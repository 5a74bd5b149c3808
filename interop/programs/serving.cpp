// Programs that answer requests with a network.
#include <algorithm>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "interop/programs/kinds.hpp"

namespace cistern::programs {
namespace {

/// A batch of requests that are answered together, and the caches of its layers.
struct Answer {
  std::uint64_t sequences, tokens, left;
  Blocks caches;  ///< two a layer
};

class Server {
 public:
  Server(Program& program, Random& random) : program_(program), random_(random) {
    layers_ = random.between(8, 32);
    hidden_ = 128 * random.between(6, 32);
    cache_width_ = hidden_ / random.pick({1, 2, 4, 8});
    at_once_ = random.between(1, 24);
    step_tokens_ = random.chance(50) ? 1 : random.pick({16, 64, 256});
    for (std::uint64_t i = 0; i < layers_; ++i) {
      weights_.push_back(program.take(4 * hidden_ * hidden_ * kHalf));
      weights_.push_back(program.take(8 * hidden_ * hidden_ * kHalf));
    }
  }

  void step() {
    if (answers_.size() < at_once_ && random_.chance(answers_.empty() ? 100 : 30)) begin();
    for (Answer& answer : answers_) extend(answer);
    for (std::size_t i = answers_.size(); i-- > 0;) {
      if (answers_[i].left > 0) continue;
      program_.drop(answers_[i].caches);
      answers_.erase(answers_.begin() + std::ptrdiff_t(i));
    }
    program_.pass(random_.between(500, 20'000));
  }

  void drop() {
    for (Answer& answer : answers_) program_.drop(answer.caches);
    program_.drop(weights_);
  }

 private:
  /// The prompt is read in one go.
  void begin() {
    Answer answer{
        random_.pick({1, 1, 2, 4, 16}), random_.logBetween(16, 4'096), random_.between(4, 60), {}};
    const std::uint64_t tokens = answer.sequences * answer.tokens;
    for (std::uint64_t i = 0; i < layers_; ++i) {
      pass(tokens);
      for (int k = 0; k < 2; ++k) answer.caches.push_back(program_.take(cacheBytes(answer)));
    }
    answers_.push_back(std::move(answer));
  }

  /// Each layer's cache is copied into one that has room for the new tokens.
  void extend(Answer& answer) {
    --answer.left;
    answer.tokens += step_tokens_;
    for (std::uint64_t i = 0; i < layers_; ++i) {
      pass(answer.sequences);
      for (std::size_t k = 2 * i; k < 2 * i + 2; ++k) {
        program_.drop(std::exchange(answer.caches[k], program_.take(cacheBytes(answer))));
      }
    }
  }

  void pass(std::uint64_t tokens) {
    const Block x = program_.take(tokens * hidden_ * kHalf);
    const Block qkv = program_.take(tokens * (hidden_ + 2 * cache_width_) * kHalf);
    program_.scratch(tokens * 32 * kHalf);
    program_.drop(qkv);
    program_.scratch(4 * tokens * hidden_ * kHalf);
    program_.drop(x);
  }

  std::uint64_t cacheBytes(const Answer& answer) const {
    return answer.sequences * answer.tokens * cache_width_ * kHalf;
  }

  Program& program_;
  Random& random_;
  std::uint64_t layers_ = 0, hidden_ = 0, cache_width_ = 0;
  std::uint64_t at_once_ = 0;      ///< answers
  std::uint64_t step_tokens_ = 0;  ///< that a cache grows by
  Blocks weights_;
  std::vector<Answer> answers_;
};

}  // namespace

void serve(Program& program, Random& random, std::uint64_t events) {
  const std::uint64_t until = program.events() + events;
  Server server(program, random);
  while (program.events() < until) server.step();
  server.drop();
}

}  // namespace cistern::programs
