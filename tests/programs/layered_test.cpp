// A network of fixed sizes: what a variable holds, and what a step leaves behind.
#include <algorithm>
#include <map>

#include "interop/programs/networks.hpp"
#include "tests/support/catch.hpp"

namespace cistern::programs::testing {
namespace {

/// Two layers of distinct sizes. A variable holds the last two activations of each.
LayeredShape twoLayers(Gradients gradients) {
  const Layer first{1'000, 10, 100, 500, false, {15, 20, 30}, 2};
  const Layer second{2'000, 11, 101, 501, true, {40, 50}, 2};
  return {{first, second}, gradients, true};
}

/// By size, the events that allocate and free.
struct Lives {
  std::map<std::uint64_t, std::vector<std::size_t>> allocated, freed;
};

Lives livesOf(const recording::Recording& trace) {
  Lives lives;
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const recording::Event& event = trace.events[i];
    if (event.kind == recording::EventKind::kAllocate) sizes.push_back(event.value);
    (event.kind == recording::EventKind::kAllocate ? lives.allocated[event.value]
                                                   : lives.freed[sizes[event.value]])
        .push_back(i);
  }
  return lives;
}

recording::Recording trained(Gradients gradients, int steps) {
  Random random(1);
  Program program(random, 10);
  LayeredNetwork network(program, twoLayers(gradients));
  Blocks loss;
  for (int i = 0; i < steps; ++i) {
    network.beginStep();
    LayeredNetwork::Pass pass = network.forward(1'000, loss);
    network.backward(pass);
    network.endStep();
  }
  return program.finish("trained");
}

}  // namespace

TEST_CASE("what a variable holds outlives its successor, and goes before the backward pass") {
  const Lives lives = livesOf(trained(Gradients::kFreedAfterStep, 3));
  const std::size_t second_loss = lives.allocated.at(kFloat).at(1);
  for (const std::uint64_t bytes : {20'000u, 40'000u}) {
    INFO(bytes);
    CHECK(lives.freed.at(bytes).at(0) > lives.allocated.at(bytes).at(1));
    CHECK(lives.freed.at(bytes).at(0) > second_loss);
    CHECK(lives.freed.at(bytes).at(0) <= second_loss + 5);
  }
  CHECK(lives.freed.at(kFloat).at(0) <= second_loss + 5);
  CHECK(lives.freed.at(kFloat).size() == 2);  // the last one lives on
}

TEST_CASE("other activations are freed by the backward pass, the last ones first") {
  const Lives lives = livesOf(trained(Gradients::kFreedAfterStep, 1));
  CHECK(lives.freed.at(101).at(0) < lives.freed.at(15'000).at(0));
  CHECK(lives.freed.at(15'000).at(0) < lives.freed.at(100).at(0));
  CHECK(lives.freed.at(100).at(0) < lives.allocated.at(1'000).at(2));  // the optimizer's state
}

TEST_CASE("gradients are freed after the step, before the next one, or never") {
  const auto allocations = [](Gradients gradients, int steps) {
    return livesOf(trained(gradients, steps)).allocated.at(2'000).size();
  };
  const auto frees = [](Gradients gradients) {
    return livesOf(trained(gradients, 2)).freed.at(2'000).size();
  };
  // A step has a gradient and a temporary of the optimizer; the first has two of its state, too.
  for (const Gradients gradients :
       {Gradients::kFreedAfterStep, Gradients::kFreedBeforeStep, Gradients::kNeverFreed}) {
    CHECK(allocations(gradients, 1) == 1 + 2 + 2);
    CHECK(allocations(gradients, 2) == 1 + 2 + 2 + 2);
  }
  CHECK(frees(Gradients::kFreedAfterStep) == 4);
  CHECK(frees(Gradients::kFreedBeforeStep) == 3);
  CHECK(frees(Gradients::kNeverFreed) == 3);  // the second gradient is added to the first
}

TEST_CASE("shapes let variables hold some activations, at times the largest") {
  int holds_largest = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const LayeredShape shape = LayeredShape::drawn(random, 20);
    REQUIRE(shape.layers.size() == 20);
    std::uint64_t held = 0, largest = 0, largest_held = 0;
    for (const Layer& layer : shape.layers) {
      REQUIRE(layer.held <= layer.kept.size());
      held += layer.held;
      for (std::size_t i = 0; i < layer.kept.size(); ++i) {
        largest = std::max(largest, layer.kept[i]);
        if (layer.kept.size() - i <= layer.held)
          largest_held = std::max(largest_held, layer.kept[i]);
      }
    }
    CHECK(held >= 3);
    CHECK(held <= 12);
    holds_largest += largest_held == largest;
  }
  CHECK(holds_largest >= 10);
}

}  // namespace cistern::programs::testing
