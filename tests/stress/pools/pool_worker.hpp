// One thread's life in a round: operations drawn from a table.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tests/stress/pools/pool_world.hpp"
#include "tests/stress/pools/session.hpp"

namespace cistern::storm {

class Worker {
 public:
  Worker(World& in, std::uint64_t seed) : world(in), random(seed) {}
  /// Ends or abandons its captures.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void step();
  std::size_t anySlot() { return random.below(world.slots.size()); }

  World& world;
  Random random;
  std::vector<std::unique_ptr<Session>> sessions;
};

/// What a thread may do next, and how often it does so among all others.
struct Operation {
  const char* name;
  unsigned weight;
  void (*run)(Worker&);
};

std::span<const Operation> blockOperations();
std::span<const Operation> poolOperations();
std::span<const Operation> graphOperations();
std::span<const Operation> streamOperations();
std::span<const Operation> pinnedOperations();
std::span<const Operation> sharedOperations();
std::span<const Operation> rareOperations();

}  // namespace cistern::storm
