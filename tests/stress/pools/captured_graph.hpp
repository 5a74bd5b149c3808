// A graph of the program's: what it holds, its replays, its end.
#pragma once

#include <memory>
#include <vector>

#include "cistern/graph.hpp"
#include "tests/stress/pools/pool_world.hpp"

namespace cistern::storm {

/// A block that was there before a capture, and is used in it: the program holds it for as long as
/// a graph does that may touch it.
struct Outside {
  Outside(World& in, HeldRef block);
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

  World& world;
  HeldRef held;
  Event ready;  ///< behind all work on it outside graphs
};

/// The body of a conditional node. The device runs it at some moment of the graph's replay.
struct Body {
  DeviceGraph graph;
  DeviceGraphExec exec;
};

/// One thread has it at a time.
class CapturedGraph {
 public:
  explicit CapturedGraph(World& in) : world(in) {}
  /// Resets it.
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  /// Queues it on the slot's stream, after all other work in its pools. Its bodies run beside it.
  void replay(std::size_t slot, Random& random);

  World& world;
  std::unique_ptr<Graph> graph;
  std::vector<PoolRef> pools;  ///< its own first; by number from the next on
  std::vector<std::shared_ptr<CapturedMemory::Kept>> kept;
  std::vector<std::shared_ptr<Outside>> outside;
  std::vector<Body> bodies;

 private:
  void launchBodies(Stream stream, Random& random);
  std::vector<std::unique_lock<std::mutex>> lockChains();
};

}  // namespace cistern::storm
