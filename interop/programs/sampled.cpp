// Programs whose sizes are drawn anew in each step.
#include <vector>

#include "allocator/base/bytes.hpp"
#include "interop/programs/kinds.hpp"

namespace cistern::programs {
namespace {

/// Messages along the edges of a graph: a gather for each edge, a sum for each node.
class GraphNetwork {
 public:
  GraphNetwork(Program& program, Random& random) : program_(program), random_(random) {
    const std::uint64_t layers = random.between(2, 5);
    for (std::uint64_t i = 0; i <= layers; ++i) widths_.push_back(16 * random.between(2, 32));
    most_nodes_ = random.logBetween(50'000, 900'000);
    features_ = program.take(random.logBetween(500'000, 3'000'000) * widths_[0] * kFloat);
    for (std::size_t i = 0; i + 1 < widths_.size(); ++i) {
      for (int k = 0; k < 6; ++k) program.take(widths_[i] * widths_[i + 1] * kFloat);
    }
  }

  void step() {
    const std::uint64_t nodes = random_.logBetween(most_nodes_ / 60 + 1, most_nodes_);
    const std::uint64_t edges = nodes * random_.between(20, 140) / 10;
    Blocks kept{program_.take(nodes * kIndex), program_.take(2 * edges * kIndex)};
    Block x = program_.take(nodes * widths_[0] * kFloat);
    for (std::size_t i = 0; i + 1 < widths_.size(); ++i) {
      kept.push_back(x);
      const Block gathered = program_.take(edges * widths_[i] * kFloat);
      const Block sums = program_.take(nodes * widths_[i] * kFloat);
      program_.drop(gathered);
      x = program_.take(nodes * widths_[i + 1] * kFloat);
      kept.push_back(sums);
      if (random_.chance(60)) kept.push_back(program_.take(nodes * widths_[i + 1]));
    }
    Block gradient = x;
    for (std::size_t i = widths_.size() - 1; i-- > 0;) {
      const Block d_sums = program_.take(nodes * widths_[i] * kFloat);
      program_.scratch(widths_[i] * widths_[i + 1] * kFloat);
      const Block d_gathered = program_.take(edges * widths_[i] * kFloat);
      const Block next = program_.take(nodes * widths_[i] * kFloat);
      program_.drop(d_gathered);
      program_.drop(d_sums);
      program_.drop(gradient);
      gradient = next;
      program_.drop(kept.back());
      kept.pop_back();
    }
    program_.drop(gradient);
    while (!kept.empty()) program_.drop(kept.back()), kept.pop_back();
  }

 private:
  Program& program_;
  Random& random_;
  std::vector<std::uint64_t> widths_;
  std::uint64_t most_nodes_ = 0;
  Block features_ = 0;
};

/// Computes the distances of all pairs, and gathers near points; from stage to stage there are
/// fewer points.
class PointNetwork {
 public:
  PointNetwork(Program& program, Random& random) : program_(program), random_(random) {
    stages_ = random.between(2, 4);
    width_ = 16 * random.between(2, 10);
    near_ = random.between(8, 32);
    most_points_ = random.logBetween(6'000, 30'000);
    for (int i = 0; i < 40; ++i) program.take(random.logBetween(kKiB, 4 * kMiB));
  }

  void step() {
    Blocks kept;
    std::uint64_t points = random_.between(most_points_ / 10, most_points_);
    std::uint64_t width = width_;
    for (std::uint64_t i = 0; i < stages_; ++i) {
      const std::uint64_t clouds = random_.between(1, 3);
      const Block distances = program_.take(points * points * kFloat);
      program_.scratch(points * kFloat);
      const Block nearest = program_.take(clouds * points * near_ * kIndex);
      program_.scratch(points * near_ * kFloat);
      program_.drop(distances);
      kept.push_back(nearest);
      const Block gathered = program_.take(clouds * points * near_ * width * kFloat / 4);
      kept.push_back(program_.take(clouds * points * near_ * width * kFloat / 2));
      program_.drop(gathered);
      kept.push_back(program_.take(clouds * points * width * kFloat));
      program_.scratch(points * random_.between(1, 60));
      points = points / 4 + random_.between(1, 64);
      width *= 2;
    }
    program_.pass(random_.between(20, 2'000));
    while (!kept.empty()) {
      program_.scratch(random_.logBetween(512, 256 * kMiB));
      program_.drop(kept.back());
      kept.pop_back();
    }
  }

 private:
  Program& program_;
  Random& random_;
  std::uint64_t stages_ = 0, width_ = 0, near_ = 0, most_points_ = 0;
};

template <class Network>
void run(Program& program, Random& random, std::uint64_t events) {
  const std::uint64_t until = program.events() + events;
  Network network(program, random);
  while (program.events() < until) {
    network.step();
    program.pass(random.between(5'000, 120'000));
  }
}

}  // namespace

void sampled(Program& program, Random& random, std::uint64_t events) {
  if (random.chance(60)) {
    run<GraphNetwork>(program, random, events);
  } else {
    run<PointNetwork>(program, random, events);
  }
}

}  // namespace cistern::programs
