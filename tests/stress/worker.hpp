// One thread's life in a world: random operations.
#pragma once

#include <random>
#include <vector>

#include "tests/stress/world.hpp"

namespace cistern::stress {

class Worker {
 public:
  Worker(World& world, std::uint64_t seed) : world_(world), random_(seed) {}
  /// Gives back what it has.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void step();

 private:
  std::uint64_t below(std::uint64_t most) { return random_() % most; }
  std::size_t anySlot() { return below(world_.slots.size()); }
  std::size_t size();
  Held* takeOut();

  bool take();  ///< false: refused
  void letGo();
  void passOn();
  void pairs();
  void useElsewhere();
  void inAPool();
  void train();
  void rarely();

  World& world_;
  std::mt19937_64 random_;
  std::vector<Held*> held_;
};

}  // namespace cistern::stress
